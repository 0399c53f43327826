// A canvas of cells to point at and to walk with arrow keys: the base of pool, block tables and prefix tree. A panel sets
// data, pool, count, replay; arrange(width, height) → height fills x, y, w, h by cell in device pixels.

import { colour, h, tell } from "./dom.mjs";
import { FREE, cell } from "./sprite.mjs";

let pointing; // what takes pointers and keys: comes with the first of them

export class Cells {
  constructor(el, ctx, name) {
    Object.assign(this, { ctx, at: -1, tick: 0 });
    this.base = h("canvas", { role: "img" });
    this.over = h("canvas", { ariaHidden: "true" });
    this.pane = h("div", { className: "cells", tabIndex: 0, role: "group", "aria-label": `${name}; arrow keys walk over the blocks` },
      h("div", { className: "pad" }, this.base, this.over));
    this.readout = h("p", { className: "readout" });
    el.append(this.pane, this.readout);
    for (const type of ["pointermove", "pointerdown", "pointerleave"]) this.over.addEventListener(type, this);
    for (const type of ["keydown", "focus", "blur"]) this.pane.addEventListener(type, this);
    ctx.grids.add(this);
    this.watch = new ResizeObserver(([{ contentRect }]) => {
      this.size = [contentRect.width, contentRect.height];
      this.draw(this.tick, true);
    });
    this.watch.observe(this.pane);
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
    const [width, room] = this.size.map((length) => Math.round(length * this.px));
    const height = this.arrange(width, room);
    for (const canvas of [this.base, this.over]) {
      if (canvas.width === width && canvas.height === height) continue;
      Object.assign(canvas, { width, height });
      Object.assign(canvas.style, { width: `${width / this.px}px`, height: `${height / this.px}px` });
    }
  }

  draw(tick, all = false) {
    this.tick = tick;
    if (!this.data || !this.size?.[0]) return;
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
