// Block tables: one row per sequence; entry k is the number of the block with its k-th group of tokens.

import { colour, hue } from "../dom.mjs";
import { Cells } from "../grid.mjs";
import { Replay } from "../replay.mjs";
import { PRIVATE } from "../sprite.mjs";

const ROW = 24; // px: a finger's width
const MOST = 100; // rows

class Tables extends Cells {
  update(data) {
    this.slots = data.slot.reduce((most, slot) => Math.max(most, slot + 1), 1);
    this.shown = Math.min(data.rows.length, MOST);
    Object.assign(this, { data, pool: data.pool, count: this.shown * this.slots });
    this.replay = new Replay(data.t, data.row.map((row, i) => row * this.slots + data.slot[i]), data.rows.length * this.slots);
  }

  arrange(width) {
    const g = this.base.getContext("2d");
    g.font = this.font = `${Math.round(14 * this.px)}px system-ui, sans-serif`;
    const widest = Math.max(...this.data.rows.slice(0, MOST).map((name) => g.measureText(name).width));
    this.left = Math.ceil(Math.min(width / 3, widest + 28 * this.px));
    const row = Math.round(ROW * this.px);
    const pitch = Math.max(2, Math.min(Math.round(40 * this.px), Math.floor((width - this.left) / this.slots)));
    this.w.fill(pitch - (pitch > 4 ? Math.ceil(this.px) : 0));
    this.h.fill(row - Math.round(6 * this.px));
    for (let at = 0; at < this.count; at++) {
      this.x[at] = this.left + (at % this.slots) * pitch;
      this.y[at] = Math.floor(at / this.slots) * row + Math.round(3 * this.px);
    }
    return this.shown * row;
  }

  block(at) {
    return this.get(at, "block");
  }

  owner(at) {
    return this.data.owner[Math.floor(at / this.slots)];
  }

  /** What the pool says of the block; −1: no block here. */
  state(at) {
    return this.block(at) < 0 ? -1 : this.other()?.state(this.block(at)) ?? PRIVATE;
  }

  level(at) {
    return this.other()?.level(this.block(at)) ?? 1;
  }

  other() {
    return this.ctx.pools[this.pool];
  }

  /** The rows' names; the whole is drawn at each tick, since a block's state may change without its table. */
  before(g) {
    Object.assign(g, { font: this.font, textBaseline: "middle", textAlign: "left" });
    for (let row = 0; row < this.shown; row++) {
      const y = this.y[row * this.slots] + this.h[0] / 2;
      g.fillStyle = hue(this.data.owner[row]);
      g.fillRect(0, y - 5 * this.px, 10 * this.px, 10 * this.px);
      g.fillStyle = colour("ink");
      g.fillText(this.data.rows[row], 18 * this.px, y + this.px, this.left - 24 * this.px);
    }
  }

  /** The block's number, where there is room, on a strip of the page's own colour. */
  label(g, at, state, x, y) {
    if (state < 0 || this.w[at] < 32 * this.px) return;
    g.fillStyle = colour("bg");
    g.fillRect(this.x[at] + 2 * this.px, this.y[at] + 2 * this.px, this.w[at] - 4 * this.px, this.h[at] - 4 * this.px);
    Object.assign(g, { textAlign: "center", fillStyle: colour("ink") });
    g.fillText(this.block(at), x, y);
  }

  summary() {
    const left = this.data.rows.length - this.shown;
    return `${this.data.rows.length} block tables of up to ${this.slots} entries${left ? `; the last ${left} are not drawn` : ""}`;
  }

  say(at) {
    const where = `${this.data.rows[Math.floor(at / this.slots)]}, entry ${at % this.slots}`;
    const block = this.block(at);
    return block < 0 ? `${where}: empty` : `${where} → ${this.other()?.say(block) ?? `block ${block}`}`;
  }
}

export default (el, ctx) => new Tables(el, ctx, "Block tables");
