// One integer clock for every panel: play, step along the marks, scrub. `changed(tick)` is called at most once a frame.

import { $, num, reduced } from "./dom.mjs";

const RUN_SECONDS = 12; // a whole log at speed 1

export class Player {
  constructor(root, changed) {
    this.changed = changed;
    this.tick = 0;
    this.end = 0;
    this.marks = [];
    this.unit = "";
    this.playing = false;
    this.root = root;
    this.scrub = $("#scrub", root);
    this.scrub.addEventListener("input", () => this.seek(Number(this.scrub.value), true));
    this.speed = $("#speed", root);
    for (const button of root.querySelectorAll("[data-do]")) button.addEventListener("click", () => this.act(button.dataset.do));
  }

  /** Take a frame's clock (or several: the longest end, all marks); the tick stays where it is if it can. */
  clocks(list) {
    const end = Math.max(0, ...list.map((c) => c.end));
    const atEnd = this.tick >= this.end && this.end > 0;
    this.marks = list.length === 1 ? list[0].marks : Int32Array.from([...new Set(list.flatMap((c) => [...c.marks]))]).sort();
    this.unit = list[0]?.unit ?? "";
    this.end = end;
    this.root.hidden = !list.length;
    this.scrub.max = end;
    this.seek(atEnd ? end : Math.min(this.tick, end));
  }

  act(name) {
    if (name === "play") return this.play(!this.playing);
    this.play(false);
    if (name === "restart") this.seek(0, true);
    if (name === "back") this.step(-1);
    if (name === "forward") this.step(1);
  }

  /** To the next (1) or previous (−1) tick at which something happens. */
  step(direction) {
    const marks = direction > 0 ? this.marks : [...this.marks].reverse();
    const next = marks.find((t) => (t - this.tick) * direction > 0);
    this.seek(next ?? (direction > 0 ? this.end : 0), true);
  }

  seek(tick, byHand = false) {
    this.tick = Math.max(0, Math.min(this.end, Math.round(tick)));
    this.exact = this.tick;
    this.scrub.value = this.tick;
    const text = `${num(this.tick)} / ${num(this.end)} ${this.unit}`;
    $("#tick", this.root).textContent = text;
    this.scrub.setAttribute("aria-valuetext", text);
    if (byHand) this.moved = true;
    this.queued ??= requestAnimationFrame(() => {
      this.queued = null;
      this.changed(this.tick);
    });
  }

  /** Start or stop. Where motion is unwelcome, play jumps from mark to mark once a second. */
  play(on) {
    if (on === this.playing) return;
    this.playing = on;
    const button = $('[data-do="play"]', this.root);
    button.setAttribute("aria-label", on ? "Pause" : "Play");
    button.classList.toggle("on", on);
    clearTimeout(this.timer);
    if (!on) return;
    if (this.tick >= this.end) this.seek(0, true);
    this.moved = true;
    if (reduced()) return this.hop();
    let before = performance.now();
    const run = (now) => {
      if (!this.playing) return;
      const exact = this.exact + ((now - before) / 1000) * (this.end / RUN_SECONDS) * Number(this.speed.value);
      before = now;
      if (Math.floor(exact) !== this.tick) this.seek(Math.floor(exact));
      this.exact = exact;
      if (this.tick >= this.end) this.play(false);
      else requestAnimationFrame(run);
    };
    requestAnimationFrame(run);
  }

  hop() {
    this.step(1);
    if (this.tick >= this.end) this.play(false);
    else this.timer = setTimeout(() => this.hop(), 1000 / Number(this.speed.value));
  }
}
