// Pointing at a canvas of cells, with a pointer or with arrow keys. Loaded at the first of either.

import { colour } from "./dom.mjs";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** What an event on the canvas or its pane says: another cell, or none. */
export function take(cells, type, key, left, top) {
  if (type === "pointermove" || type === "pointerdown") point(cells, hit(cells, left * cells.px, top * cells.px));
  else if (type === "pointerleave" || type === "blur" || key === "Escape") point(cells, -1);
  else if (STEPS[key] && cells.count) walk(cells, ...STEPS[key]);
}

function hit({ x, y, w, h }, left, top) {
  return x.findIndex((edge, at) => left >= edge && left <= edge + w[at] && top >= y[at] && top <= y[at] + h[at]);
}

function point(cells, at) {
  if (at === cells.at) return;
  cells.at = at;
  const block = at < 0 ? -1 : cells.block(at);
  for (const one of cells.ctx.grids) outline(one, one.pool === cells.pool ? block : -1);
  cells.tell();
}

/** To the cell nearest to the current one in direction (dx, dy), sideways distance counting 8 times. */
function walk(cells, dx, dy) {
  const { at: here, count, x, y, w, h, px, pane } = cells;
  let [to, best] = [Math.max(0, here), Infinity];
  const from = [x[to] + w[to] / 2, y[to] + h[to] / 2];
  for (let at = 0; at < count && here >= 0; at++) {
    const right = x[at] + w[at] / 2 - from[0];
    const down = y[at] + h[at] / 2 - from[1];
    const ahead = right * dx + down * dy;
    const far = ahead + 8 * Math.abs(dx ? down : right);
    if (ahead > 0 && far < best && cells.state(at) >= 0) [to, best] = [at, far];
  }
  point(cells, to);
  pane.scrollTop = Math.min(pane.scrollTop, y[to] / px);
  pane.scrollTop = Math.max(pane.scrollTop, (y[to] + h[to]) / px - pane.clientHeight);
}

/** Outline every cell that shows this block of the pool; −1: none. */
function outline(cells, block) {
  const { over, px, count, x, y, w, h } = cells;
  const g = over.getContext("2d");
  g.clearRect(0, 0, over.width, over.height);
  if (block < 0 || !px) return;
  const line = 2 * px;
  for (const [ink, width] of [["bg", 2 * line], ["ink", line]]) {
    Object.assign(g, { strokeStyle: colour(ink), lineWidth: width });
    for (let at = 0; at < count; at++) {
      if (cells.block(at) !== block) continue;
      const pad = Math.max(line / 2, 3 * px - w[at] / 2); // never too small to see
      g.strokeRect(x[at] - pad, y[at] - pad, w[at] + 2 * pad, h[at] + 2 * pad);
    }
  }
}
