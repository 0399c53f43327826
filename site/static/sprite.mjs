// How one block looks. Owner by hue; state by shape, never by colour alone:
// free faint · reserved hollow · private solid · prefill solid with a folded corner · shared double border and dot ·
// cached hatched. Each look is drawn once per size and theme, then copied.

import { colour, hue } from "./dom.mjs";

export const STATES = ["free", "private", "shared", "cached", "reserved", "prefill"];
export const [FREE, PRIVATE, SHARED, CACHED, RESERVED, PREFILL] = STATES.keys();

export const LABELS = {
  free: "free",
  private: "one owner, decode",
  shared: "shared",
  cached: "cached, evictable",
  reserved: "reserved, not written",
  prefill: "one owner, prompt",
};

let made = new Map();
document.addEventListener("theme", () => made.clear());

function frame(g, w, h, inset, line) {
  g.lineWidth = line;
  g.strokeRect(inset + line / 2, inset + line / 2, w - 2 * inset - line, h - 2 * inset - line);
}

function stripes(g, w, h, step, line) {
  g.lineWidth = line;
  g.beginPath();
  for (let x = -h; x < w; x += step) {
    g.moveTo(x, h);
    g.lineTo(x + h, 0);
  }
  g.stroke();
}

function solid(g, w, h, owner) {
  g.fillStyle = colour(hue(owner));
  g.fillRect(0, 0, w, h);
  const turn = Math.floor(owner / 8) % 4; // owners 8, 16, 24 on: the same hue with bars, rules, or both
  g.fillStyle = colour("bg");
  if (w < 6) return;
  if (turn & 1) g.fillRect(0, Math.floor(h / 2) - 1, w, Math.max(1, Math.round(h / 8)));
  if (turn & 2) g.fillRect(Math.floor(w / 2) - 1, 0, Math.max(1, Math.round(w / 8)), h);
}

const DRAW = {
  free(g, w, h) {
    g.fillStyle = colour("soft");
    g.fillRect(0, 0, w, h);
    if (w < 6) return;
    g.strokeStyle = colour("line");
    frame(g, w, h, 0, 1);
  },
  reserved(g, w, h, owner) {
    g.fillStyle = g.strokeStyle = colour(hue(owner));
    if (w >= 5) return frame(g, w, h, 0, w > 24 ? 2 : 1);
    g.globalAlpha = 0.35;
    g.fillRect(0, 0, w, h);
  },
  private: solid,
  prefill(g, w, h, owner) {
    solid(g, w, h, owner);
    if (w < 7) return;
    g.fillStyle = colour("bg");
    const fold = Math.round(w * 0.42);
    g.beginPath();
    g.moveTo(0, 0);
    g.lineTo(fold, 0);
    g.lineTo(0, fold);
    g.fill();
  },
  shared(g, w, h) {
    g.fillStyle = colour("shared");
    g.fillRect(0, 0, w, h);
    g.strokeStyle = g.fillStyle = colour("bg");
    if (w >= 9) frame(g, w, h, Math.max(1, Math.round(w / 9)), Math.max(1, Math.round(w / 14)));
    if (w < 4 || w >= 18) return; // large ones carry their ref count
    const dot = Math.max(1, Math.round(w / 5));
    g.fillRect(Math.round((w - dot) / 2), Math.round((h - dot) / 2), dot, dot);
  },
  cached(g, w, h) {
    g.fillStyle = g.strokeStyle = colour("cached");
    if (w < 5) {
      g.globalAlpha = 0.6;
      return g.fillRect(0, 0, w, h);
    }
    stripes(g, w, h, Math.max(3, Math.round(w / 3.5)), Math.max(1, w / 12));
    frame(g, w, h, 0, 1);
  },
};

/** The picture of a state, `w` × `h` device pixels. */
export function sprite(name, owner, w, h) {
  const key = `${name} ${name === "shared" || name === "cached" || name === "free" ? 0 : owner % 32} ${w} ${h}`;
  let image = made.get(key);
  if (!image) {
    if (made.size > 3000) made = new Map();
    image = document.createElement("canvas");
    image.width = w;
    image.height = h;
    DRAW[name](image.getContext("2d"), w, h, owner);
    made.set(key, image);
  }
  return image;
}

/** One cell at (x, y); `level` 0…1 is how much of it is written, from the bottom; the rest stays hollow. */
export function cell(g, x, y, w, h, state, owner, level = 1) {
  g.clearRect(x, y, w, h);
  const written = h < 6 || state === FREE || state === RESERVED || state === CACHED ? h : Math.round(h * level);
  if (written < h) g.drawImage(sprite("reserved", owner, w, h), x, y);
  if (written > 0) g.drawImage(sprite(STATES[state], owner, w, h), 0, h - written, w, written, x, y + h - written, w, written);
}
