// Spans in rows along the clock. The picture is drawn once; playing moves a veil over what is still to come, so that a
// hundred thousand spans cost no more than ten. Zoom with + − 0, the buttons, a double click or Ctrl and the wheel.

import { colour, h, hue, num, tell } from "../dom.mjs";

const HATCH = { waiting: [0, 6], preempted: [6, 6], wasted: [6, 0], transfer: [3, 3] }; // from (0, a) to (6, b): shape beside colour

class Gantt {
  constructor(el, ctx) {
    Object.assign(this, { ctx, at: -1, owner: -1, tick: 0, from: 0, zoom: 1 });
    this.base = h("canvas", { role: "img" });
    this.over = h("canvas", { ariaHidden: "true" });
    this.pane = h("div", { className: "cells", tabIndex: 0, role: "group", "aria-label": "Timeline; up and down walk over the requests, plus, minus and 0 zoom" },
      h("div", { className: "pad" }, this.base, this.over));
    const button = (label, name, act) => h("button", { type: "button", className: "icon quiet", "aria-label": name, onclick: act }, label);
    this.readout = h("p", { className: "readout" });
    this.legend = h("ul", { className: "legend" });
    this.caption = h("p", { className: "caption" });
    el.append(this.pane, h("div", { className: "under" }, this.readout, h("div", { className: "row" },
      button("−", "Zoom out", () => this.scale(0.5)), button("+", "Zoom in", () => this.scale(2)), button("0", "Show all", () => this.scale(0)))), this.legend, this.caption);
    for (const type of ["pointermove", "pointerdown", "pointerup", "pointerleave", "dblclick"]) this.over.addEventListener(type, this);
    for (const type of ["keydown", "focus", "blur"]) this.pane.addEventListener(type, this);
    this.over.addEventListener("wheel", this, { passive: false });
    this.watch = new ResizeObserver(() => this.draw(this.tick, true));
    this.watch.observe(this.pane);
  }

  close() {
    this.watch.disconnect();
  }

  theme() {
    this.keys();
    this.draw(this.tick, true);
  }

  update(data) {
    this.data = data;
    this.end = data.end.reduce((most, end) => Math.max(most, end), 1);
    this.order = Int32Array.from(data.type.keys()).sort((a, b) => data.type[a] - data.type[b]);
    Object.assign(this, { at: -1, stale: true, owner: data.owner.includes(this.owner) ? this.owner : -1 });
    tell(this.caption, data.caption);
    this.keys();
  }

  keys() {
    this.fills = this.data.types.map((name) => this.fill(name));
    this.legend.replaceChildren(...this.data.legend.map((name) => {
      const swatch = h("canvas", { width: 32, height: 32, ariaHidden: "true" });
      const g = swatch.getContext("2d");
      g.fillStyle = this.fill(name);
      g.fillRect(0, 0, 32, 32);
      return h("li", {}, swatch, name);
    }));
  }

  fill(name) {
    if (!HATCH[name]) return colour(name);
    const size = 6 * Math.ceil(devicePixelRatio);
    const tile = h("canvas", { width: size, height: size });
    const g = tile.getContext("2d");
    const [a, b] = HATCH[name].map((y) => (y / 6) * size);
    Object.assign(g, { strokeStyle: colour(name), lineWidth: devicePixelRatio * 2 });
    g.beginPath();
    for (const shift of [-size, 0, size]) {
      g.moveTo(shift, a);
      g.lineTo(size + shift, a === b ? a : b);
    }
    g.stroke();
    return g.createPattern(tile, "repeat");
  }

  /** Zoom by a factor around a tick, or to all with 0. */
  scale(factor, around = this.tick) {
    const share = (around - this.from) / this.span;
    this.zoom = factor ? Math.max(1, Math.min(this.end / 20, this.zoom * factor)) : 1;
    this.pan(around - share * this.span);
  }

  pan(from) {
    this.from = Math.max(0, Math.min(this.end - this.span, from));
    this.draw(this.tick, true);
  }

  get span() {
    return this.end / this.zoom;
  }

  fit() {
    const { clientWidth, clientHeight } = this.pane;
    this.px = devicePixelRatio;
    for (const canvas of [this.base, this.over]) {
      const [width, height] = [clientWidth, clientHeight].map((length) => Math.round(length * this.px));
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      Object.assign(canvas.style, { width: `${clientWidth}px`, height: `${clientHeight}px` });
    }
    this.high = Math.min(28 * this.px, this.base.height / Math.max(1, this.data.rows));
    this.gap = this.high > 6 * this.px ? this.px : 0;
  }

  x(tick) {
    return ((tick - this.from) / this.span) * this.base.width;
  }

  draw(tick, all = false) {
    this.tick = tick;
    if (!this.data || !this.pane.clientWidth) return;
    if (all || this.stale) this.paint();
    this.veil();
    this.tell();
  }

  paint() {
    this.stale = false;
    this.fit();
    const { data, high, gap, px } = this;
    const g = this.base.getContext("2d");
    g.clearRect(0, 0, this.base.width, this.base.height);
    let type = -1;
    for (const i of this.order) {
      const left = this.x(data.start[i]);
      const right = this.x(data.end[i]);
      if (right < 0 || left > this.base.width) continue;
      if (data.type[i] !== type) g.fillStyle = this.fills[(type = data.type[i])];
      const width = Math.max(right - left, px);
      g.fillRect(left, data.row[i] * high, width, Math.max(high - gap, 1));
      if (high < 10 * px || width < 24 * px || data.types[type] !== "decode") continue;
      g.fillStyle = hue(data.owner[i]);
      g.fillRect(left, data.row[i] * high, 3 * px, high - gap);
      g.fillStyle = this.fills[type];
    }
  }

  /** The clock's line, and what comes after it fainter; the chosen request outlined. */
  veil() {
    const { over, px, data, high, gap } = this;
    const g = over.getContext("2d");
    g.clearRect(0, 0, over.width, over.height);
    const now = this.x(this.tick);
    Object.assign(g, { globalAlpha: 0.65, fillStyle: colour("bg") });
    if (this.tick < this.end) g.fillRect(Math.max(0, now), 0, over.width, over.height);
    Object.assign(g, { globalAlpha: 1, fillStyle: colour("ink"), strokeStyle: colour("ink"), lineWidth: 2 * px });
    g.fillRect(now - px, 0, 2 * px, over.height);
    if (this.owner < 0) return;
    for (let i = 0; i < data.row.length; i++) {
      if (data.owner[i] !== this.owner) continue;
      const left = this.x(data.start[i]);
      g.strokeRect(left, data.row[i] * high, Math.max(this.x(data.end[i]) - left, px), Math.max(high - gap, 2 * px));
    }
  }

  tell() {
    const { data, tick } = this;
    const n = data.types.map(() => 0);
    for (let i = 0; i < data.row.length; i++) if (data.start[i] <= tick && tick < data.end[i]) n[data.type[i]]++;
    const now = data.types.map((name, k) => (n[k] ? `${num(n[k])} ${name}` : "")).filter(Boolean).join(" · ") || "nothing under way";
    this.base.ariaLabel = `${data.title}: ${now}`;
    tell(this.readout, this.at >= 0 ? this.say(this.at) : this.owner >= 0 ? this.life() : now);
  }

  say(i) {
    const { data } = this;
    const ms = (tick) => `${num(tick, 1)} ms`;
    const tokens = data.tokens[i] ? `, ${num(data.tokens[i])} tokens` : "";
    return `Request ${data.owner[i]}: ${data.types[data.type[i]]}${tokens}, ${ms(data.start[i])} to ${ms(data.end[i])}`;
  }

  life() {
    const { data, owner } = this;
    const sums = data.types.map(() => 0);
    for (let i = 0; i < data.row.length; i++) if (data.owner[i] === owner) sums[data.type[i]] += data.end[i] - data.start[i];
    return `Request ${owner}: ${data.types.map((name, k) => (sums[k] ? `${name} ${num(sums[k], 1)} ms` : "")).filter(Boolean).join(" · ")}`;
  }

  hit(left, top) {
    const { data, high } = this;
    const row = Math.floor((top * this.px) / high);
    const tick = this.from + (left / this.pane.clientWidth) * this.span;
    const near = (2 * this.span) / this.pane.clientWidth;
    return data.row.findIndex((r, i) => r === row && data.start[i] - near <= tick && tick <= data.end[i] + near);
  }

  /** Choose a request; its story is in the readout until another is chosen. */
  choose(owner) {
    this.owner = owner === this.owner ? -1 : owner;
    this.draw(this.tick);
  }

  handleEvent(event) {
    const { type, key, offsetX, offsetY, buttons } = event;
    if (type === "focus" || type === "blur") this.readout.ariaLive = type === "focus" ? "polite" : "off";
    else if (type === "keydown") this.press(key, event);
    else if (type === "wheel") {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.scale(event.deltaY < 0 ? 1.25 : 0.8, this.from + (offsetX / this.pane.clientWidth) * this.span);
    } else if (type === "dblclick") this.scale(this.zoom > 1 ? 0 : 8, this.from + (offsetX / this.pane.clientWidth) * this.span);
    else if (type === "pointerdown") this.held = { x: offsetX, from: this.from };
    else if (type === "pointerup") {
      if (this.held && Math.abs(this.held.x - offsetX) < 4 && this.at >= 0) this.choose(this.data.owner[this.at]);
      this.held = null;
    } else if (type === "pointermove" && buttons && this.held && this.zoom > 1) {
      this.pan(this.held.from - ((offsetX - this.held.x) / this.pane.clientWidth) * this.span);
    } else {
      const at = type === "pointermove" ? this.hit(offsetX, offsetY) : -1;
      if (at === this.at) return;
      this.at = at;
      this.tell();
    }
  }

  press(key, event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[key];
    const owners = step && Array.from(new Set(this.data.owner)).sort((a, b) => a - b);
    if (step) this.choose(owners[Math.max(0, Math.min(owners.length - 1, owners.indexOf(this.owner) + step))] ?? -1);
    else if (key === "Escape") this.choose(this.owner);
    else if (key === "+" || key === "=") this.scale(2);
    else if (key === "-") this.scale(0.5);
    else if (key === "0") this.scale(0);
    else if (this.zoom > 1 && /^Arrow/.test(key)) this.pan(this.from + (key === "ArrowLeft" ? -0.2 : 0.2) * this.span);
    else return;
    event.preventDefault();
  }
}

const make = (el, ctx) => new Gantt(el, ctx);
export default make;
(globalThis.panels ??= {}).gantt = make; // for a page that loads it first
