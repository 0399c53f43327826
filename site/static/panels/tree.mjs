// The prefix cache as an icicle: left to right along the tokens, one lane per branch; a chain without branches is one bar.
// Places are fixed for the whole log, so nothing moves while the clock runs.

import { num } from "../dom.mjs";
import { Cells } from "../grid.mjs";
import { Replay } from "../replay.mjs";
import { FREE, STATES, cell } from "../sprite.mjs";

class Tree extends Cells {
  constructor(el, ctx) {
    super(el, ctx, "Prefix tree; arrow keys walk from block to block");
  }

  update(data) {
    this.data = data;
    this.pool = data.pool;
    this.count = data.node.reduce((most, n) => Math.max(most, n + 1), 0);
    this.replay = new Replay(data.t, data.node, this.count);
    this.place();
    this.fit();
  }

  /** Depth, first lane and number of lanes of every node, children in order of creation. */
  place() {
    const { node, parent } = this.data;
    this.parent = new Int32Array(this.count).fill(-1);
    node.forEach((n, i) => (this.parent[n] = parent[i]));
    const children = Array.from({ length: this.count }, () => []);
    const roots = [];
    this.parent.forEach((p, n) => (p < 0 ? roots : children[p]).push(n));
    this.children = children;
    this.depth = new Int32Array(this.count);
    this.lane = new Int32Array(this.count);
    this.lanes = new Int32Array(this.count).fill(1);
    let next = 0;
    const walk = roots.reverse().map((n) => [n, 0]);
    const order = [];
    while (walk.length) {
      const [n, depth] = walk.pop();
      this.depth[n] = depth;
      this.lane[n] = next;
      if (!children[n].length) next++;
      order.push(n);
      for (let i = children[n].length - 1; i >= 0; i--) walk.push([children[n][i], depth + 1]);
    }
    for (const n of order.reverse()) {
      if (children[n].length) this.lanes[n] = children[n].reduce((sum, child) => sum + this.lanes[child], 0);
    }
    this.leaves = next;
    this.deepest = this.depth.reduce((most, d) => Math.max(most, d + 1), 1);
  }

  arrange(width, height) {
    this.pitch = Math.max(2, Math.min(Math.round(28 * this.px), Math.floor(width / this.deepest)));
    this.high = Math.max(3, Math.min(Math.round(26 * this.px), Math.floor(height / Math.max(1, this.leaves))));
    this.fresh = true;
    return Math.min(this.high * Math.max(1, this.leaves), 8000);
  }

  box(n) {
    const gap = this.high > 5 ? Math.round(2 * this.px) : 1;
    const seam = this.children[n].length === 1 ? 0 : Math.round(this.px);
    return [this.depth[n] * this.pitch, this.lane[n] * this.high, this.pitch - seam, this.lanes[n] * this.high - gap];
  }

  hit(x, y) {
    for (let n = 0; n < this.count; n++) {
      const [left, top, w, height] = this.box(n);
      if (x >= left && x <= left + w && y >= top && y <= top + height) return this.state(n) === FREE ? -1 : n;
    }
    return -1;
  }

  walk(n, dx, dy) {
    if (dx < 0) return this.parent[n] < 0 ? n : this.parent[n];
    if (dx > 0) return this.children[n][0] ?? n;
    const peers = this.parent[n] < 0 ? [n] : this.children[this.parent[n]];
    return peers[peers.indexOf(n) + dy] ?? n;
  }

  first() {
    return this.count ? 0 : -1;
  }

  state(n) {
    const row = this.replay.last[n];
    return row < 0 ? FREE : this.data.state[row];
  }

  block(n) {
    const row = this.replay.last[n];
    return row < 0 || this.data.state[row] === FREE ? -1 : this.data.block[row];
  }

  cellsOf(block) {
    const found = [];
    for (let n = 0; n < this.count; n++) if (this.block(n) === block) found.push(n);
    return found;
  }

  paint(g, cells) {
    if (!cells) g.clearRect(0, 0, g.canvas.width, g.canvas.height);
    for (const n of cells ?? Array(this.count).keys()) {
      const [x, y, w, height] = this.box(n);
      if (this.state(n) === FREE) g.clearRect(x, y, w, height);
      else cell(g, x, y, w, height, this.state(n), this.data.owner[this.replay.last[n]]);
    }
  }

  summary() {
    let live = 0;
    for (let n = 0; n < this.count; n++) if (this.state(n) !== FREE) live++;
    if (!live) return "The prefix cache is empty";
    return `${num(live)} full blocks in the tree · ${num(this.leaves)} branches over the whole run`;
  }

  say(n) {
    const row = this.replay.last[n];
    if (this.state(n) === FREE) return `Node ${n}: left the cache`;
    const size = this.data.block_size;
    const span = `tokens ${num(this.depth[n] * size + 1)}–${num((this.depth[n] + 1) * size)}`;
    return `${span} · block ${this.data.block[row]} · ${STATES[this.data.state[row]]} · ref count ${this.data.refs[row]}`;
  }
}

export default (el, ctx) => new Tree(el, ctx);
