// A pool of KV blocks as a grid: hue = owner, shape = state, level = tokens written, number = ref count.

import { colour, h, num } from "../dom.mjs";
import { Cells } from "../grid.mjs";
import { Replay } from "../replay.mjs";
import { CACHED, FREE, LABELS, RESERVED, SHARED, STATES, cell, sprite } from "../sprite.mjs";

class Pool extends Cells {
  constructor(el, ctx) {
    super(el, ctx, "Pool of blocks; arrow keys walk over it");
    this.legend = h("ul", { class: "legend" });
    this.caption = h("p", { class: "caption" });
    el.append(this.legend, this.caption);
    document.addEventListener("theme", () => this.data && this.keys());
  }

  update(data) {
    this.data = data;
    this.pool = data.pool;
    this.count = data.count;
    this.replay = new Replay(data.t, data.block, data.count, data.grow);
    this.ctx.bus.pools.set(data.pool, this);
    this.caption.textContent = data.caption;
    this.keys();
    this.fit();
  }

  keys() {
    this.legend.replaceChildren(
      ...this.data.legend.map((name) => {
        const owner = name === "reserved" || name === "private" || name === "prefill" ? 0 : -1;
        const swatch = h("canvas", { width: 32, height: 32, "aria-hidden": "true" });
        swatch.getContext("2d").drawImage(sprite(name, owner, 32, 32), 0, 0);
        return h("li", {}, swatch, LABELS[name] ?? name);
      }),
    );
  }

  /** The largest whole pitch with which all cells fit; pools on one stage share it. */
  arrange(width, height) {
    const cells = Math.max(this.count, this.data.area === "stage" ? this.ctx.cells : 0);
    let pitch = Math.min(Math.round(40 * this.px), Math.max(1, Math.floor(Math.sqrt((width * height) / cells)) + 1));
    while (pitch > 1 && Math.floor(width / pitch) * Math.floor(height / pitch) < cells) pitch--;
    this.pitch = pitch;
    this.gap = pitch > 14 * this.px ? Math.round(2 * this.px) : pitch > 3 ? 1 : 0;
    this.columns = Math.floor(width / pitch);
    this.fresh = true;
    return height;
  }

  box(block) {
    const size = this.pitch - this.gap;
    return [(block % this.columns) * this.pitch, Math.floor(block / this.columns) * this.pitch, size, size];
  }

  hit(x, y) {
    const column = Math.floor(x / this.pitch);
    const block = Math.floor(y / this.pitch) * this.columns + column;
    return column < this.columns && block < this.count ? block : -1;
  }

  walk(block, dx, dy) {
    const to = block + dx + dy * this.columns;
    return to >= 0 && to < this.count ? to : block;
  }

  block(at) {
    return at;
  }

  cellsOf(block) {
    return block < this.count ? [block] : [];
  }

  state(block) {
    const row = this.replay.last[block];
    return row < 0 ? FREE : this.data.state[row];
  }

  owner(block) {
    const row = this.replay.last[block];
    return row < 0 ? -1 : this.data.owner[row];
  }

  tokens(block) {
    const { fill, grow, t } = this.data;
    const row = this.replay.last[block];
    return row < 0 ? 0 : fill[row] + Math.max(0, Math.min(grow[row], this.tick - t[row]));
  }

  paint(g, cells) {
    if (!cells) g.clearRect(0, 0, g.canvas.width, g.canvas.height);
    const { refs, block_size: full } = this.data;
    const size = this.pitch - this.gap;
    const count = size >= 18 * this.px;
    g.font = `600 ${Math.round(Math.min(14 * this.px, size * 0.62))}px system-ui, sans-serif`;
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (const block of cells ?? Array(this.count).keys()) {
      const [x, y] = this.box(block);
      const state = this.state(block);
      cell(g, x, y, size, size, state, this.owner(block), this.tokens(block) / full);
      if (!count || state !== SHARED) continue;
      g.fillStyle = colour("on-shared");
      g.fillText(refs[this.replay.last[block]], x + size / 2, y + size / 2 + this.px / 2);
    }
  }

  summary() {
    const tally = new Int32Array(STATES.length);
    for (let block = 0; block < this.count; block++) tally[this.state(block)]++;
    const parts = [`${num(this.count - tally[FREE] - tally[CACHED])} of ${num(this.count)} blocks taken`];
    if (tally[SHARED]) parts.push(`${num(tally[SHARED])} shared`);
    if (tally[CACHED]) parts.push(`${num(tally[CACHED])} cached`);
    if (tally[RESERVED]) parts.push(`${num(tally[RESERVED])} reserved and empty`);
    return parts.join(" · ");
  }

  say(block) {
    const state = this.state(block);
    if (state === FREE) return `Block ${block}: free`;
    const owner = this.owner(block);
    const who = state === SHARED ? `shared by ${this.data.refs[this.replay.last[block]]}` : LABELS[STATES[state]];
    const whose = owner >= 0 && state !== SHARED ? ` · conversation ${owner + 1}` : "";
    return `Block ${block}: ${who}${whose} · ${this.tokens(block)} of ${this.data.block_size} tokens`;
  }
}

export default (el, ctx) => new Pool(el, ctx);
