// Arrow keys over a canvas of cells. Loaded at the first of them.

/** The cell nearest to the current one in direction (dx, dy), sideways distance counting 8 times; itself if none is. */
export function nearest(cells, dx, dy) {
  const { at: here, count, x, y, w, h } = cells;
  let [to, best] = [Math.max(0, here), Infinity];
  const from = [x[to] + w[to] / 2, y[to] + h[to] / 2];
  for (let at = 0; at < count && here >= 0; at++) {
    const right = x[at] + w[at] / 2 - from[0];
    const down = y[at] + h[at] / 2 - from[1];
    const ahead = right * dx + down * dy;
    const far = ahead + 8 * Math.abs(dx ? down : right);
    if (ahead > 0 && far < best && cells.state(at) >= 0) [to, best] = [at, far];
  }
  return to;
}
