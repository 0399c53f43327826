// One integer clock for every panel: play, step along its marks, scrub. `changed(tick)` comes at most once a frame.

import { $, num, tell, upto } from "./dom.mjs";

const RUN = 12_000; // ms for a whole log at speed 1

export class Player {
  constructor(root, changed) {
    Object.assign(this, { root, changed, tick: 0, end: 0, marks: [] });
    this.scrub = $("#scrub", root);
    this.scrub.addEventListener("input", () => this.seek(+this.scrub.value, true));
    for (const el of root.querySelectorAll("[data-do]")) el.addEventListener("click", () => this.act(el.dataset.do));
  }

  /** Take the clocks of all frames: to the `wanted` tick where they reach it, else the tick, or the end, stays. */
  clocks(list) {
    const atEnd = this.end > 0 && this.tick >= this.end;
    this.end = Math.max(0, ...list.map((c) => c.end));
    this.marks = Int32Array.from(list.flatMap((c) => [...c.marks])).sort();
    this.unit = list[0]?.unit ?? "";
    this.root.classList.toggle("still", !list.length);
    this.scrub.max = this.end;
    this.seek(this.wanted <= this.end ? this.wanted : atEnd ? this.end : this.tick);
  }

  act(name) {
    if (name === "play") return this.play(!this.playing);
    this.play(false);
    if (name === "restart") this.seek(0, true);
    else this.step(name === "forward");
  }

  /** To the next or previous tick at which something happens. */
  step(forward) {
    const next = forward ? this.marks[upto(this.marks, this.tick)] ?? this.end : this.marks[upto(this.marks, this.tick - 1) - 1] ?? 0;
    this.seek(next, true);
  }

  seek(tick, byHand = false) {
    this.exact = Math.max(0, Math.min(this.end, tick));
    this.tick = this.scrub.value = Math.floor(this.exact);
    if (byHand) Object.assign(this, { moved: true, wanted: undefined });
    const text = `${num(this.tick)} / ${num(this.end)} ${this.unit}`;
    tell($("#tick", this.root), text);
    this.scrub.setAttribute("aria-valuetext", text);
    this.queued ??= requestAnimationFrame(() => {
      this.queued = null;
      this.changed(this.tick);
    });
  }

  /** Start or stop. Where motion is unwelcome, it goes from mark to mark, one a second. */
  play(on) {
    this.playing = on;
    const button = $("[data-do=play]", this.root);
    button.setAttribute("aria-label", on ? "Pause" : "Play");
    button.classList.toggle("on", on);
    clearTimeout(this.timer);
    if (!on) return;
    this.seek(this.tick < this.end ? this.tick : 0, true);
    let before = performance.now();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const run = () => {
      if (!this.playing) return;
      const now = performance.now();
      const speed = +$("#speed", this.root).value;
      if (calm) this.step(true);
      else this.seek(this.exact + ((now - before) / RUN) * this.end * speed);
      before = now;
      if (this.tick >= this.end) this.play(false);
      else if (calm) this.timer = setTimeout(run, 1000 / speed);
      else requestAnimationFrame(run);
    };
    requestAnimationFrame(run);
  }
}
