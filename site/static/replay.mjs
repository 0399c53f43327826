// A log of changes → what holds at any tick. Row i says what is true of cell `key[i]` from `t[i]` on. Copies are kept
// every few thousand rows, so that going back costs no more than a short run forward.

export class Replay {
  constructor(t, key, count, grow = null) {
    Object.assign(this, { t, key, grow, count });
    this.stride = Math.max(4096, count);
    this.last = new Int32Array(count).fill(-1); // cell → row that holds, −1: none yet
    this.copies = [];
    this.next = 0;
    this.tick = -1;
    this.growing = new Set();
  }

  /** Go to a tick; returns the cells that look different now, or null when most of them may. */
  seek(tick) {
    const before = this.tick;
    this.tick = tick;
    if (tick < before) this.rewind(tick);
    const from = this.next;
    const changed = new Set(tick < before ? [] : this.growing);
    while (this.next < this.t.length && this.t[this.next] <= tick) this.apply(changed);
    if (this.grow) this.settle(tick);
    return tick < before || before < 0 || this.next - from > this.count ? null : changed;
  }

  apply(changed) {
    const row = this.next++;
    const cell = this.key[row];
    this.last[cell] = row;
    changed.add(cell);
    if (this.grow?.[row] > 0) this.growing.add(cell);
    else this.growing.delete(cell);
    if (this.next % this.stride === 0) this.copies[this.next / this.stride] ??= this.last.slice();
  }

  rewind(tick) {
    let low = 0;
    let high = this.t.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.t[middle] <= tick) low = middle + 1;
      else high = middle;
    }
    const copy = Math.floor(low / this.stride);
    if (copy && this.copies[copy]) this.last.set(this.copies[copy]);
    else this.last.fill(-1);
    this.next = copy && this.copies[copy] ? copy * this.stride : 0;
    this.growing.clear();
    if (this.grow) this.last.forEach((row, cell) => row >= 0 && this.grow[row] > 0 && this.growing.add(cell));
  }

  settle(tick) {
    for (const cell of this.growing) {
      const row = this.last[cell];
      if (tick >= this.t[row] + this.grow[row]) this.growing.delete(cell);
    }
  }
}
