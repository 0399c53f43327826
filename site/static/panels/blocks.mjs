// A pool of KV blocks as a grid: hue = owner, shape = state, level = tokens written, number = ref count.

import { colour, h, num, tell } from "../dom.mjs";
import { Cells } from "../grid.mjs";
import { Replay } from "../replay.mjs";
import { CACHED, FREE, SHARED, STATES, sprite } from "../sprite.mjs";

class Pool extends Cells {
  constructor(el, ctx) {
    super(el, ctx, "Pool");
    this.legend = h("ul", { className: "legend" });
    this.caption = h("p", { className: "caption" });
    el.append(this.legend, this.caption);
  }

  update(data) {
    Object.assign(this, { data, pool: data.pool, count: data.count });
    this.replay = new Replay(data.t, data.block, data.count, data.grow);
    this.ctx.pools[data.pool] = this;
    tell(this.caption, data.caption);
    if (`${data.legend}` !== this.names) this.keys();
  }

  theme() {
    this.keys();
    super.theme();
  }

  keys() {
    this.names = `${this.data.legend}`;
    this.legend.replaceChildren(...this.data.legend.map((name) => {
      const swatch = h("canvas", { width: 32, height: 32, ariaHidden: "true" });
      swatch.getContext("2d").drawImage(sprite(name, -1, 32, 32), 0, 0);
      return h("li", {}, swatch, name);
    }));
  }

  /** The largest pitch at which all cells fit, whole pixels unless tiny; pools beside each other share it. */
  arrange(width, height) {
    const cells = this.data.area === "stage" ? this.ctx.cells : this.count;
    let pitch = Math.min(40 * this.px, Math.sqrt((width * height) / cells));
    if (pitch > 8) pitch = Math.floor(pitch);
    while (pitch > 1 && Math.floor(width / pitch) * Math.floor(height / pitch) < cells) pitch -= pitch > 8 ? 1 : 0.02;
    const columns = Math.max(1, Math.floor(width / pitch));
    const gap = pitch > 14 * this.px ? Math.round(2 * this.px) : pitch > 3.5 ? 1 : 0;
    const edge = (i) => Math.round(i * pitch);
    for (let at = 0; at < this.count; at++) {
      const [column, row] = [at % columns, Math.floor(at / columns)];
      this.x[at] = edge(column);
      this.y[at] = edge(row);
      this.w[at] = Math.max(1, edge(column + 1) - edge(column) - gap);
      this.h[at] = Math.max(1, edge(row + 1) - edge(row) - gap);
    }
    this.font = `600 ${Math.round(Math.min(14 * this.px, pitch * 0.56))}px system-ui, sans-serif`;
    return height;
  }

  block(at) {
    return at;
  }

  tokens(at) {
    if (this.replay.last[at] < 0) return 0;
    return this.get(at, "fill") + Math.max(0, Math.min(this.get(at, "grow"), this.tick - this.get(at, "t")));
  }

  level(at) {
    return this.tokens(at) / this.data.block_size;
  }

  label(g, at, state, x, y) {
    if (state !== SHARED || this.w[at] < 18 * this.px) return;
    Object.assign(g, { font: this.font, textAlign: "center", textBaseline: "middle", fillStyle: colour("on-shared") });
    g.fillText(this.get(at, "refs"), x, y);
  }

  summary() {
    const n = new Int32Array(STATES.length);
    let used = 0;
    for (let at = 0; at < this.count; at++) {
      const state = this.state(at);
      n[state]++;
      if (state !== FREE && state !== CACHED) used += this.level(at);
    }
    const taken = this.count - n[FREE] - n[CACHED];
    const more = [[SHARED, "shared"], [CACHED, "cached"]].filter(([s]) => n[s]).map(([s, name]) => ` · ${num(n[s])} ${name}`);
    return `${num(taken)} of ${num(this.count)} · ${num(taken && 100 * (1 - used / taken), 1)} % empty${more.join("")}`;
  }

  say(at) {
    const state = STATES[this.state(at)];
    if (state === "free") return `Block ${at}: free`;
    const who = state === "shared" || state === "cached" ? `, ref count ${this.get(at, "refs")}` : `, conversation ${this.owner(at) + 1}`;
    return `Block ${at}: ${state}${who} · ${this.tokens(at)} of ${this.data.block_size} tokens`;
  }
}

const make = (el, ctx) => new Pool(el, ctx);
export default make;
(globalThis.panels ??= {}).blocks = make; // for a page that loads it first
