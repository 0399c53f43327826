// A heat map: a cell per row and column, coloured by level. Point at one or walk with arrow keys; a click holds it.

import { colour, h, num, tell } from "../dom.mjs";
import { layers, size } from "../layers.mjs";
import { basis } from "./metric.mjs";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

class Heat {
  constructor(el) {
    for (const old of [...el.children].slice(1)) old.remove();
    layers(this, "Heat map; arrow keys walk over the cells, Enter chooses one", "click", "dblclick");
    this.choose = h("button", { type: "button", className: "quiet" }, "Plan this one");
    this.legend = h("ul", { className: "legend" });
    this.note = h("p", { className: "caption" });
    el.append(this.pane, h("div", { className: "under" }, this.readout, this.choose), this.legend, this.note);
    this.at = -1;
  }

  close() {
    this.watch.disconnect();
  }

  theme() {
    this.draw();
  }

  update(data) {
    this.data = data;
    const { levels, none, caption } = data;
    const key = (level, text) => h("li", {}, h("i", { className: `key h-${level}` }), text);
    this.legend.replaceChildren(...levels.map((text, i) => key(i, text)), key("none", none));
    this.note.replaceChildren(caption, " ", h("span", { className: "tag" }, basis(data)));
    if (this.at < 0) this.at = data.mark;
    this.draw();
  }

  draw() {
    if (!this.data || !this.room?.[0]) return;
    const { rows, columns, level, mark } = this.data;
    this.px = devicePixelRatio;
    const [width, height] = this.room.map((length) => Math.round(length * this.px));
    this.w = Math.floor(width / columns.length);
    this.h = Math.floor(height / rows.length);
    size(this, this.w * columns.length, this.h * rows.length);
    const g = this.base.getContext("2d");
    const gap = this.w > 4 * this.px ? Math.round(this.px) : 0;
    g.clearRect(0, 0, this.base.width, this.base.height);
    const inks = [...this.data.levels.keys()].map((i) => colour(`heat${i}`));
    for (let at = 0; at < level.length; at++) {
      const [x, y] = [(at % columns.length) * this.w, Math.floor(at / columns.length) * this.h];
      g.fillStyle = level[at] < 0 ? colour("soft") : inks[level[at]];
      if (level[at] >= 0) g.fillRect(x, y, this.w - gap, this.h - gap);
      else g.fillRect(x + (this.w >> 1) - 1, y + (this.h >> 1) - 1, 2 * gap + 1, 2 * gap + 1);
    }
    this.base.ariaLabel = `${this.data.title}: ${this.say(mark)}`;
    this.point(this.at);
  }

  say(at) {
    const { rows, columns, level, none, facts } = this.data;
    if (at < 0) return `${rows.length} × ${columns.length} cells: point at one`;
    const name = `${rows[Math.floor(at / columns.length)]} on ${columns[at % columns.length]}`;
    if (level[at] < 0) return `${name}: ${none}`;
    const told = facts.filter(({ values }) => !Number.isNaN(values[at]));
    return `${name}: ${told.map((fact) => `${fact.name} ${num(values(fact, at), fact.digits)} ${fact.unit}`.trim()).join(", ")}`;
  }

  point(at) {
    this.at = at;
    tell(this.readout, this.say(at));
    const { rows, columns, keys } = this.data;
    const [r, c] = [Math.floor(at / columns.length), at % columns.length];
    this.choose.disabled = at < 0;
    this.choose.dataset.state = at < 0 ? "{}" : JSON.stringify({ [keys[0]]: rows[r], [keys[1]]: columns[c] });
    const g = this.over.getContext("2d");
    g.clearRect(0, 0, this.over.width, this.over.height);
    if (at < 0) return;
    Object.assign(g, { strokeStyle: colour("ink"), lineWidth: 2 * this.px, fillStyle: colour("line"), globalAlpha: 0.35 });
    g.fillRect(0, r * this.h, c * this.w, this.h);
    g.fillRect(c * this.w, 0, this.w, r * this.h);
    g.globalAlpha = 1;
    g.strokeRect(c * this.w, r * this.h, this.w, this.h);
  }

  handleEvent(event) {
    const { type, key, offsetX, offsetY } = event;
    const { rows, columns, mark } = this.data;
    if (key === "Escape" || type === "click") this.held = type === "click" && (!this.held || this.at !== this.kept);
    if (key === "Escape") return this.point(mark);
    if (type === "dblclick" || key === "Enter") return this.choose.click();
    if (type === "pointermove" && this.held) return;
    let [r, c] = [Math.floor(this.at / columns.length), this.at % columns.length];
    if (STEPS[key]) {
      event.preventDefault();
      c += STEPS[key][0];
      r += STEPS[key][1];
    } else if (/^pointer(move|down)|click/.test(type)) [r, c] = [Math.floor((offsetY * this.px) / this.h), Math.floor((offsetX * this.px) / this.w)];
    else return;
    if (r >= 0 && r < rows.length && c >= 0 && c < columns.length) this.point(r * columns.length + c);
    if (type === "click") this.kept = this.at;
  }
}

const values = (fact, at) => fact.values[at];

export default (el) => new Heat(el);
