// A log of changes → what holds at any tick: row i says what is true of cell `key[i]` from `t[i]` on.

export class Replay {
  /** `grow[i]`: for how many ticks after t[i] the cell still changes. */
  constructor(t, key, count, grow) {
    Object.assign(this, { t, key, grow, next: 0, tick: -1, growing: new Set() });
    this.last = new Int32Array(count).fill(-1); // cell → the row that holds, −1: none yet
  }

  /** Go to a tick: the cells that look different, or null when most may. */
  seek(tick) {
    const back = tick < this.tick;
    if (back) {
      this.next = 0;
      this.last.fill(-1);
      this.growing.clear();
    }
    const all = back || this.tick < 0;
    const changed = new Set(all ? [] : this.growing);
    for (; this.t[this.next] <= tick; this.next++) {
      const cell = this.key[this.next];
      this.last[cell] = this.next;
      if (!all) changed.add(cell);
      if (this.grow?.[this.next]) this.growing.add(cell);
    }
    for (const cell of this.growing) {
      const row = this.last[cell];
      if (tick >= this.t[row] + this.grow[row]) this.growing.delete(cell);
    }
    this.tick = tick;
    return all ? null : changed;
  }
}
