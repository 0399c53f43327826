// A Frame from the core becomes panels: columns turn into typed arrays, each panel goes to the module of its kind.

import { $, h } from "./dom.mjs";
import blocks from "./panels/blocks.mjs";
import metric from "./panels/metric.mjs";
import plot from "./panels/plot.mjs";
import table from "./panels/table.mjs";
import tables from "./panels/tables.mjs";
import text from "./panels/text.mjs";
import tree from "./panels/tree.mjs";

const KINDS = { blocks, metric, plot, table, tables, text, tree };

/** JSON with columns (`$` into `buffers`, or base64 in place) → the same with Int32Array / Float32Array. */
export function decode(value, buffers) {
  if (Array.isArray(value)) return value.map((item) => decode(item, buffers));
  if (value === null || typeof value !== "object") return value;
  const baked = value.$b64;
  if (baked === undefined && value.$ === undefined) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decode(item, buffers)]));
  }
  const bytes = baked === undefined ? buffers[value.$] : Uint8Array.from(atob(baked), (c) => c.charCodeAt(0)).buffer;
  return new (value.type === "i32" ? Int32Array : Float32Array)(bytes, 0, value.n);
}

/** Who else shows a block of this pool? Panels join with `on` and light up what another one points at. */
export class Bus {
  constructor() {
    this.pools = new Map(); // pool name → {state, owner, refs} reader of its grid
    this.listeners = new Set();
  }
  point(pool, cells) {
    for (const listener of this.listeners) listener(pool, cells);
  }
}

/** The panels of one frame in their areas. `areas`: area name → element. `ctx`: {seek, verify} for panels that act. */
export class View {
  constructor(areas, ctx) {
    this.areas = areas;
    this.panels = new Map();
    this.ctx = { ...ctx, bus: new Bus() };
    for (const el of Object.values(areas)) el.replaceChildren();
    document.addEventListener("theme", () => this.each((panel) => panel.theme?.()));
  }

  each(action) {
    for (const panel of this.panels.values()) action(panel);
  }

  /** Show a decoded frame; panels that were there before are updated in place. */
  show(frame) {
    const spots = {};
    const kept = new Map();
    this.ctx.cells = Math.max(0, ...frame.panels.filter((p) => p.kind === "blocks" && p.area === "stage").map((p) => p.count));
    for (const data of frame.panels) {
      const area = this.areas[data.area];
      if (!KINDS[data.kind] || !area) continue;
      const key = `${data.kind}:${data.id}`;
      const panel = this.panels.get(key) ?? this.create(data);
      kept.set(key, panel);
      this.panels.delete(key);
      const spot = (spots[data.area] = (spots[data.area] ?? -1) + 1);
      if (area.children[spot] !== panel.el) area.insertBefore(panel.el, area.children[spot] ?? null);
      $("h2", panel.el)?.replaceChildren(data.title);
      panel.update(data, frame);
    }
    this.each((panel) => {
      panel.el.remove();
      panel.close?.();
    });
    this.panels = kept;
    this.frame = frame;
  }

  create(data) {
    const el = data.kind === "metric" ? h("div", { class: "tile" }) : h("section", { class: "panel" }, h("h2", {}, data.title));
    el.dataset.kind = data.kind;
    el.dataset.id = data.id;
    return Object.assign(KINDS[data.kind](el, this.ctx), { el });
  }

  draw(tick) {
    const t = Math.min(tick, this.frame?.clock?.end ?? tick);
    this.each((panel) => panel.draw?.(t));
  }
}
