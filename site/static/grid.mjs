// A canvas of cells to point at and to walk with arrow keys: the base of pool, block tables and prefix tree. A panel sets
// data, pool, count, replay; arrange(width, height) → height fills x, y, w, h by cell in device pixels.

import { tell } from "./dom.mjs";
import { layers, size } from "./layers.mjs";
import { FREE, cell } from "./sprite.mjs";

let pointing; // what takes pointers and keys: comes with the first of them

export class Cells {
  constructor(el, ctx, name) {
    Object.assign(this, { ctx, at: -1, tick: 0 });
    layers(this, `${name}; arrow keys walk over the blocks`);
    el.append(this.pane, this.readout);
    ctx.grids.add(this);
  }

  close() {
    this.watch.disconnect();
    this.ctx.grids.delete(this);
  }

  theme() {
    this.draw(this.tick, true);
  }

  get(at, column) {
    const row = this.replay.last[at];
    return row < 0 ? -1 : this.data[column][row];
  }
  state(at) {
    return Math.max(FREE, this.get(at, "state"));
  }
  owner(at) {
    return this.get(at, "owner");
  }

  /** Size the canvases to the pane, in the screen's own pixels. */
  fit() {
    this.px = devicePixelRatio;
    for (const name of "xywh") this[name] = new Int32Array(this.count);
    const [width, room] = this.room.map((length) => Math.round(length * this.px));
    size(this, width, this.arrange(width, room));
  }

  draw(tick, all = false) {
    this.tick = tick;
    if (!this.data || !this.room?.[0]) return;
    const changed = this.replay.seek(tick);
    const whole = all || !changed || this.before;
    if (all || !changed) this.fit();
    const g = this.base.getContext("2d");
    if (whole) g.clearRect(0, 0, this.base.width, this.base.height);
    this.before?.(g);
    if (whole) for (let at = 0; at < this.count; at++) this.paint(g, at);
    else for (const at of changed) this.paint(g, at);
    this.tell();
  }

  paint(g, at) {
    const x = this.x[at], y = this.y[at], w = this.w[at], height = this.h[at];
    const state = this.state(at);
    if (state >= 0) cell(g, x, y, w, height, state, this.owner(at), this.level?.(at));
    this.label?.(g, at, state, x + w / 2, y + height / 2 + this.px);
  }

  tell() {
    const summary = this.summary();
    this.base.ariaLabel = `${this.data.title}: ${summary}`;
    tell(this.readout, this.at < 0 ? summary : this.say(this.at));
  }

  async handleEvent(event) {
    const { type, key, offsetX, offsetY } = event;
    if (/^Arrow/.test(key)) event.preventDefault();
    pointing ??= import("./point.mjs");
    (await pointing).take(this, type, key, offsetX, offsetY);
  }
}
