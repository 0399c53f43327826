// Spans in rows along the clock. The picture is drawn once; playing moves a veil over what is still to come, so that a
// hundred thousand spans cost no more than ten. Zoom with + − 0, the buttons, a double click or Ctrl and the wheel.

import { colour, h, hue, num, tell } from "../dom.mjs";
import { layers, size } from "../layers.mjs";

const HATCH = { waiting: [0, 6], preempted: [6, 6], wasted: [6, 0], transfer: [3, 3] }; // from (0, a) to (6, b): shape beside colour

class Gantt {
  constructor(el, ctx) {
    Object.assign(this, { ctx, at: -1, owner: -1, tick: 0, from: 0, zoom: 1 });
    layers(this, "Timeline; up and down walk over the requests, plus, minus and 0 zoom", "pointerup", "dblclick");
    const button = (label, name, act) => h("button", { type: "button", className: "icon quiet", "aria-label": name, onclick: act }, label);
    this.legend = h("ul", { className: "legend" });
    this.caption = h("p", { className: "caption" });
    el.append(this.pane, h("div", { className: "under" }, this.readout, h("div", { className: "row" },
      button("−", "Zoom out", () => this.scale(0.5)), button("+", "Zoom in", () => this.scale(2)), button("0", "Show all", () => this.scale(0)))), this.legend, this.caption);
    this.over.addEventListener("wheel", this, { passive: false });
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
    this.px = devicePixelRatio;
    size(this, ...this.room.map((length) => Math.round(length * this.px)));
    this.high = Math.min(28 * this.px, this.base.height / Math.max(1, this.data.rows));
    this.gap = this.high > 6 * this.px ? this.px : 0;
  }

  x(tick) {
    return ((tick - this.from) / this.span) * this.base.width;
  }

  draw(tick, all = false) {
    this.tick = tick;
    if (!this.data || !this.room?.[0]) return;
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
      if (data.first[i] >= 0) this.notch(g, i);
      if (high < 10 * px || width < 24 * px || data.types[type] !== "decode") continue;
      g.fillStyle = hue(data.owner[i]);
      g.fillRect(left, data.row[i] * high, 3 * px, high - gap);
      g.fillStyle = this.fills[type];
    }
  }

  /** Cut a decode where its tokens come, as far as they are apart. */
  notch(g, i) {
    const { data: { row, begin, each, times, end, first }, high, px, from } = this;
    for (let r = first[i]; begin[r] < end[i]; r++) {
      if (this.x(from + each[r]) < 5 * px) continue;
      const [low, most] = [from, from + this.span].map((tick) => (tick - begin[r]) / each[r]);
      for (let k = Math.max(1, Math.ceil(low)); k <= Math.min(times[r], most); k++) g.clearRect(this.x(begin[r] + k * each[r]) - px, row[i] * high, px, high);
    }
  }

  /** The clock's line, and what comes after it fainter; the chosen request outlined. */
  veil() {
    const { over, px, data, high, gap } = this;
    const g = over.getContext("2d");
    g.clearRect(0, 0, over.width, over.height);
    const now = this.x(this.tick);
    Object.assign(g, { globalAlpha: 0.65, fillStyle: colour("bg") });
    g.fillRect(Math.max(0, now), 0, over.width, over.height);
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
    const { data: { start, end, owner, title }, tick } = this;
    const now = this.sums((i) => start[i] <= tick && tick < end[i], (name, n) => `${num(n)} ${name}`) || "nothing under way";
    const life = () => this.sums((i) => (owner[i] === this.owner) * (end[i] - start[i]), (name, ms) => `${name} ${num(ms, 1)} ms`);
    this.base.ariaLabel = `${title}: ${now}`;
    tell(this.readout, this.at >= 0 ? this.say(this.at) : this.owner >= 0 ? `Request ${this.owner}: ${life()}` : now);
  }

  /** By type the sum over its spans, in words, where there is one. */
  sums(of, words) {
    const { types, type } = this.data;
    const sums = types.map(() => 0);
    for (let i = 0; i < type.length; i++) sums[type[i]] += of(i);
    return types.map((name, k) => sums[k] && words(name, sums[k])).filter(Boolean).join(" · ");
  }

  say(i) {
    const { data } = this;
    const ms = (tick) => `${num(tick, 1)} ms`;
    const tokens = data.tokens[i] ? `, ${num(data.tokens[i])} tokens` : "";
    return `Request ${data.owner[i]}: ${data.types[data.type[i]]}${tokens}, ${ms(data.start[i])} to ${ms(data.end[i])}`;
  }

  /** The tick at a place of the pane. */
  when(left) {
    return this.from + (left / this.room[0]) * this.span;
  }

  hit(left, top) {
    const { data, high } = this;
    const row = Math.floor((top * this.px) / high);
    const tick = this.when(left);
    const near = this.when(2) - this.from;
    return data.row.findIndex((r, i) => r === row && data.start[i] - near <= tick && tick <= data.end[i] + near);
  }

  /** Choose a request; its story is in the readout until another is chosen. */
  choose(owner) {
    this.owner = owner === this.owner ? -1 : owner;
    this.draw(this.tick);
  }

  handleEvent(event) {
    const { type, key, offsetX, offsetY, buttons } = event;
    if (type === "keydown") this.press(key, event);
    else if (type === "wheel") {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.scale(event.deltaY < 0 ? 1.25 : 0.8, this.when(offsetX));
    } else if (type === "dblclick") this.scale(this.zoom > 1 ? 0 : 8, this.when(offsetX));
    else if (type === "pointerdown") this.held = { x: offsetX, from: this.from };
    else if (type === "pointerup") {
      if (this.held && Math.abs(this.held.x - offsetX) < 4 && this.at >= 0) this.choose(this.data.owner[this.at]);
      this.held = null;
    } else if (type === "pointermove" && buttons && this.held && this.zoom > 1) {
      this.pan(this.held.from + this.when(this.held.x) - this.when(offsetX));
    } else {
      const at = type === "pointermove" ? this.hit(offsetX, offsetY) : -1;
      if (at === this.at) return;
      this.at = at;
      this.tell();
    }
  }

  press(key, event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[key];
    const zoom = { "+": 2, "=": 2, "-": 0.5, 0: 0 }[key];
    const owners = step && Int32Array.from(new Set(this.data.owner)).sort();
    if (step) this.choose(owners[Math.max(0, Math.min(owners.length - 1, owners.indexOf(this.owner) + step))] ?? -1);
    else if (key === "Escape") this.choose(this.owner);
    else if (zoom >= 0) this.scale(zoom);
    else if (this.zoom > 1 && /^Arrow/.test(key)) this.pan(this.from + (key === "ArrowLeft" ? -0.2 : 0.2) * this.span);
    else return;
    event.preventDefault();
  }
}

const make = (el, ctx) => new Gantt(el, ctx);
export default make;
(globalThis.panels ??= {}).gantt = make; // for a page that loads it first
