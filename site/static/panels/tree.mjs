// The prefix cache as an icicle: tokens from left to right, a lane per branch; a chain of blocks is one bar.
// Places are those of the whole log, so that nothing moves while the clock runs.

import { num } from "../dom.mjs";
import { Cells } from "../grid.mjs";
import { Replay } from "../replay.mjs";
import { FREE, STATES } from "../sprite.mjs";

class Tree extends Cells {
  update(data) {
    const count = data.node.reduce((most, node) => Math.max(most, node + 1), 0);
    Object.assign(this, { data, pool: data.pool, count, replay: new Replay(data.t, data.node, count) });
    this.place();
  }

  /** Depth, first lane and number of lanes of every node; children stand in order of creation. */
  place() {
    const children = Array.from({ length: this.count + 1 }, () => []); // the last entry is the root's
    const parent = new Int32Array(this.count);
    this.data.node.forEach((node, i) => (parent[node] = this.data.parent[i]));
    parent.forEach((above, node) => children.at(above).push(node));
    for (const name of ["depth", "lane", "lanes"]) this[name] = new Int32Array(this.count);
    this.leaves = this.deepest = 0;
    const order = [];
    const open = children.at(-1).reverse();
    while (open.length) {
      const node = open.pop();
      this.depth[node] = parent[node] < 0 ? 0 : this.depth[parent[node]] + 1;
      this.deepest = Math.max(this.deepest, this.depth[node] + 1);
      this.lane[node] = this.leaves;
      if (!children[node].length) this.lanes[node] = ++this.leaves && 1;
      order.push(node);
      open.push(...children[node].reverse());
    }
    for (const node of order.reverse()) if (parent[node] >= 0) this.lanes[parent[node]] += this.lanes[node];
  }

  arrange(width, height) {
    const pitch = Math.max(2, Math.min(Math.round(28 * this.px), Math.floor(width / this.deepest)));
    const high = Math.max(3, Math.min(Math.round(26 * this.px), Math.floor(height / this.leaves)));
    const gap = high > 5 ? 2 : 1;
    this.w.fill(pitch - (pitch > 5 ? 1 : 0));
    for (let node = 0; node < this.count; node++) {
      this.x[node] = this.depth[node] * pitch;
      this.y[node] = this.lane[node] * high;
      this.h[node] = this.lanes[node] * high - gap;
    }
    return Math.min(8000, Math.max(high * this.leaves, height));
  }

  block(node) {
    return this.state(node) < 0 ? -1 : this.get(node, "block");
  }

  /** −1 before a node enters the cache and after it leaves. */
  state(node) {
    const state = this.get(node, "state");
    return state === FREE ? -1 : state;
  }

  label(g, node, state) {
    if (state < 0) g.clearRect(this.x[node], this.y[node], this.w[node], this.h[node]);
  }

  summary() {
    let live = 0;
    for (let node = 0; node < this.count; node++) live += this.state(node) >= 0;
    return live ? `${num(live)} full blocks in the tree; ${num(this.leaves)} branches over the whole run` : "The prefix cache is empty";
  }

  say(node) {
    if (this.state(node) < 0) return "Not in the cache now";
    const from = this.depth[node] * this.data.block_size;
    const state = STATES[this.state(node)];
    return `Tokens ${num(from + 1)}–${num(from + this.data.block_size)}: block ${this.block(node)}, ${state}, ref count ${this.get(node, "refs")}`;
  }
}

export default (el, ctx) => new Tree(el, ctx, "Prefix tree");
