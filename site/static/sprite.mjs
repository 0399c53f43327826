// How a block looks: owner by hue, state by shape, never by colour alone. Each look is drawn once, then copied.
// private solid · shared double border · cached hatched · reserved hollow · free faint

import { colour, hue } from "./dom.mjs";

export const STATES = ["free", "private", "shared", "cached", "reserved"];
export const [FREE, PRIVATE, SHARED, CACHED, RESERVED] = STATES.keys();

let made = new Map();
addEventListener("theme", () => made.clear());

const border = (g, w, h, inset, line) => {
  g.lineWidth = line;
  g.strokeRect(inset + line / 2, inset + line / 2, w - 2 * inset - line, h - 2 * inset - line);
};

const DRAW = {
  free(g, w, h) {
    g.fillRect(0, 0, w, h);
    g.strokeStyle = colour("line");
    if (w > 5) border(g, w, h, 0, 1);
  },
  reserved(g, w, h) {
    if (w > 4) return border(g, w, h, 0, w > 24 ? 2 : 1);
    g.globalAlpha = 0.35;
    g.fillRect(0, 0, w, h);
  },
  private(g, w, h, owner) {
    g.fillRect(0, 0, w, h);
    const turn = owner > 7 ? (owner >> 3) & 3 : 0; // owners from 8 on: the same hues with a bar, a rule, or both
    g.fillStyle = colour("bg");
    if (turn & 1 && w > 5) g.fillRect(0, h >> 1, w, Math.max(1, h >> 3));
    if (turn & 2 && w > 5) g.fillRect(w >> 1, 0, Math.max(1, w >> 3), h);
  },
  shared(g, w, h) {
    g.fillRect(0, 0, w, h);
    g.strokeStyle = colour("bg");
    if (w > 6) border(g, w, h, Math.max(1, Math.round(w / 8)), Math.max(1, Math.round(w / 14)));
  },
  cached(g, w, h) {
    border(g, w, h, 0, 1);
    g.lineWidth = Math.max(1, w / 12);
    for (let x = -h; x < w; x += Math.max(3, w / 3.5)) {
      g.moveTo(x, h);
      g.lineTo(x + h, 0);
    }
    g.stroke();
  },
};

const INK = { free: "soft", shared: "shared", cached: "cached" };

/** The picture of a state, `w` × `h` device pixels. */
export function sprite(name, owner, w, h) {
  const key = ((STATES.indexOf(name) * 32 + (INK[name] ? 0 : owner & 31)) * 999 + w) * 999 + h;
  if (made.size > 3000) made = new Map();
  if (!made.has(key)) {
    const image = new OffscreenCanvas(w, h);
    const g = image.getContext("2d");
    g.fillStyle = g.strokeStyle = INK[name] ? colour(INK[name]) : hue(owner);
    DRAW[name](g, w, h, owner);
    made.set(key, image.transferToImageBitmap());
  }
  return made.get(key);
}

/** One cell; `level` 0…1 of it is written, from the bottom, the rest stays hollow. */
export function cell(g, x, y, w, h, state, owner, level = 1) {
  g.clearRect(x, y, w, h);
  const part = h < 6 || state === FREE || state === RESERVED ? h : Math.ceil(h * level);
  if (part < h) g.drawImage(sprite("reserved", owner, w, h), x, y);
  if (part) g.drawImage(sprite(STATES[state], owner, w, h), 0, h - part, w, part, x, y + h - part, w, part);
}
