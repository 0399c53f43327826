// A canvas of cells that can be pointed at and walked with the arrow keys: the base of pool, block tables and tree.
//
// A subclass has arrange(width, height) → used height, hit(x, y) → cell, box(cell) → [x, y, w, h], walk(cell, dx, dy),
// block(cell), cellsOf(block), say(cell), summary(), paint(g, cells or null). All lengths are device pixels.

import { colour, h } from "./dom.mjs";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Cells {
  constructor(el, ctx, hint) {
    this.ctx = ctx;
    this.at = -1;
    this.base = h("canvas", { role: "img" });
    this.over = h("canvas", { "aria-hidden": "true" });
    this.sheet = h("div", { class: "pad" }, this.base, this.over);
    this.pane = h("div", { class: "cells", tabIndex: 0, role: "group", "aria-label": hint }, this.sheet);
    this.readout = h("p", { class: "readout" });
    el.append(this.pane, this.readout);
    const point = (event) => this.point(this.hit(event.offsetX * this.px, event.offsetY * this.px));
    this.over.addEventListener("pointermove", point);
    this.over.addEventListener("pointerdown", point);
    this.over.addEventListener("pointerleave", () => this.point(-1));
    this.pane.addEventListener("keydown", (event) => this.key(event));
    this.pane.addEventListener("focus", () => this.readout.setAttribute("aria-live", "polite"));
    this.pane.addEventListener("blur", () => {
      this.readout.removeAttribute("aria-live");
      this.point(-1);
    });
    this.listener = (pool, blocks) => this.mark(pool === this.pool ? blocks : []);
    ctx.bus.listeners.add(this.listener);
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(this.pane);
  }

  close() {
    this.watch.disconnect();
    this.ctx.bus.listeners.delete(this.listener);
  }

  theme() {
    this.draw(this.tick, true);
  }

  /** Size both canvases to the pane, at the screen's own pixels, and draw everything. */
  fit() {
    if (!this.data || !this.pane.clientWidth) return;
    this.px = devicePixelRatio || 1;
    const width = Math.round(this.pane.clientWidth * this.px);
    const height = Math.ceil(this.arrange(width, Math.round(this.pane.clientHeight * this.px)));
    for (const canvas of [this.base, this.over]) {
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
      canvas.style.width = `${width / this.px}px`;
      canvas.style.height = `${height / this.px}px`;
    }
    this.draw(this.tick ?? 0, true);
  }

  draw(tick, all = false) {
    if (!this.px || !this.data) return;
    const changed = this.replay.seek((this.tick = tick));
    this.paint(this.base.getContext("2d"), all || this.fresh ? null : changed);
    this.fresh = false;
    this.describe();
  }

  describe() {
    const summary = this.summary();
    if (this.base.ariaLabel !== summary) this.base.setAttribute("aria-label", `${this.data.title}: ${summary}`);
    const text = this.at < 0 ? summary : this.say(this.at);
    if (this.readout.textContent !== text) this.readout.textContent = text;
  }

  point(cell) {
    if (cell === this.at) return;
    this.at = cell;
    this.ctx.bus.point(this.pool, cell < 0 ? [] : this.blocks(cell));
    this.describe();
  }

  blocks(cell) {
    const block = this.block(cell);
    return block < 0 ? [] : [block];
  }

  key(event) {
    if (event.key === "Escape") return this.point(-1);
    const step = STEPS[event.key];
    const to = step ? (this.at < 0 ? this.first() : this.walk(this.at, ...step)) : event.key === "Home" ? this.first() : -1;
    if (to < 0) return;
    event.preventDefault();
    this.point(to);
    const [x, y, w, height] = this.box(to).map((v) => v / this.px);
    const pane = this.pane;
    if (y < pane.scrollTop) pane.scrollTop = y - 8;
    if (y + height > pane.scrollTop + pane.clientHeight) pane.scrollTop = y + height + 8 - pane.clientHeight;
    if (x + w > pane.scrollLeft + pane.clientWidth || x < pane.scrollLeft) pane.scrollLeft = x - 8;
  }

  first() {
    return 0;
  }

  /** Outline every cell that shows one of these blocks. */
  mark(blocks) {
    const g = this.over.getContext("2d");
    g.clearRect(0, 0, this.over.width, this.over.height);
    if (!blocks.length || !this.px) return;
    const line = Math.max(2, Math.round(2 * this.px));
    for (const [stroke, wide] of [[colour("bg"), line * 2], [colour("ink"), line]]) {
      g.strokeStyle = stroke;
      g.lineWidth = wide;
      for (const block of blocks) {
        for (const cell of this.cellsOf(block)) {
          const [x, y, w, height] = this.box(cell);
          const pad = Math.max(line / 2, (5 * this.px - w) / 2); // never smaller than can be seen
          g.strokeRect(x - pad, y - pad, w + 2 * pad, height + 2 * pad);
        }
      }
    }
  }
}
