// Block tables: one row per conversation, cell k holds the number of the block with its k-th group of tokens.

import { colour, hue } from "../dom.mjs";
import { Cells } from "../grid.mjs";
import { Replay } from "../replay.mjs";
import { PRIVATE, cell } from "../sprite.mjs";

const ROW = 24; // a finger's width
const MOST = 100; // rows

class Tables extends Cells {
  constructor(el, ctx) {
    super(el, ctx, "Block tables; arrow keys walk over the cells");
  }

  update(data) {
    this.data = data;
    this.pool = data.pool;
    this.slots = data.slot.reduce((most, s) => Math.max(most, s + 1), 1);
    this.rows = Math.min(data.rows.length, MOST);
    this.replay = new Replay(data.t, data.row.map((row, i) => row * this.slots + data.slot[i]), data.rows.length * this.slots);
    this.fit();
  }

  arrange(width) {
    const g = this.base.getContext("2d");
    g.font = this.font = `${Math.round(14 * this.px)}px system-ui, sans-serif`;
    const widest = Math.max(0, ...this.data.rows.slice(0, MOST).map((label) => g.measureText(label).width));
    this.left = Math.ceil(Math.min(width / 3, widest + 24 * this.px));
    this.row = Math.round(ROW * this.px);
    this.pitch = Math.max(2, Math.min(Math.round(40 * this.px), Math.floor((width - this.left) / this.slots)));
    this.gap = this.pitch > 4 ? Math.round(this.px) : 0;
    this.fresh = true;
    return this.rows * this.row;
  }

  box(at) {
    const row = Math.floor(at / this.slots);
    const inset = Math.round(3 * this.px);
    return [this.left + (at % this.slots) * this.pitch, row * this.row + inset, this.pitch - this.gap, this.row - 2 * inset];
  }

  /** A cell, or −2 − row for a row's label, or −1. */
  hit(x, y) {
    const row = Math.floor(y / this.row);
    const slot = Math.floor((x - this.left) / this.pitch);
    if (row >= this.rows) return -1;
    return slot >= 0 && slot < this.slots ? row * this.slots + slot : -1;
  }

  walk(at, dx, dy) {
    const row = Math.floor(at / this.slots) + dy;
    const slot = (at % this.slots) + dx;
    return row >= 0 && row < this.rows && slot >= 0 && slot < this.slots ? row * this.slots + slot : at;
  }

  block(at) {
    const row = this.replay.last[at];
    return row < 0 ? -1 : this.data.block[row];
  }

  cellsOf(block) {
    const found = [];
    for (let at = 0; at < this.rows * this.slots; at++) if (this.block(at) === block) found.push(at);
    return found;
  }

  paint(g) {
    g.clearRect(0, 0, g.canvas.width, g.canvas.height);
    g.font = this.font;
    g.textBaseline = "middle";
    const numbers = this.pitch >= 32 * this.px;
    const pool = this.ctx.bus.pools.get(this.pool);
    for (let row = 0; row < this.rows; row++) {
      const owner = this.data.owner[row];
      const middle = (row + 0.5) * this.row;
      g.textAlign = "left";
      g.fillStyle = colour(hue(owner));
      g.fillRect(0, middle - 6 * this.px, 12 * this.px, 12 * this.px);
      g.fillStyle = colour("ink");
      g.fillText(this.data.rows[row], 18 * this.px, middle + this.px, this.left - 24 * this.px);
      g.textAlign = "center";
      for (let at = row * this.slots; at < (row + 1) * this.slots; at++) {
        const block = this.block(at);
        if (block < 0) continue;
        const [x, y, w, height] = this.box(at);
        if (numbers) {
          g.strokeStyle = colour(pool?.state(block) === 2 ? "shared" : hue(owner));
          g.lineWidth = Math.max(1, Math.round(2 * this.px));
          g.strokeRect(x + this.px, y + this.px, w - 2 * this.px, height - 2 * this.px);
          g.fillText(block, x + w / 2, y + height / 2 + this.px);
        } else cell(g, x, y, w, height, pool?.state(block) ?? PRIVATE, owner, pool ? pool.tokens(block) / pool.data.block_size : 1);
      }
    }
  }

  summary() {
    const left = this.data.rows.length - this.rows;
    const more = left ? ` · the first ${this.rows}; ${left} more not drawn` : "";
    return `${this.data.rows.length} block tables, up to ${this.slots} blocks each${more}`;
  }

  say(at) {
    const name = this.data.rows[Math.floor(at / this.slots)];
    const block = this.block(at);
    if (block < 0) return `${name}, entry ${at % this.slots}: empty`;
    return `${name}, entry ${at % this.slots} → ${this.ctx.bus.pools.get(this.pool)?.say(block) ?? `block ${block}`}`;
  }
}

export default (el, ctx) => new Tables(el, ctx);
