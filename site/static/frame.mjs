// A Frame from the core becomes panels: columns turn into typed arrays, each panel goes to the module of its kind.

import { h, tell } from "./dom.mjs";
import metric from "./panels/metric.mjs";
import text from "./panels/text.mjs";

/** A kind that is fetched when a panel comes near the screen; the style sheet keeps its place. */
const lazy = (name) => (el, ctx) => {
  let [made, data, tick] = [null, null, 0];
  const load = async () => {
    if (made) return;
    made = {};
    watch.disconnect();
    made = (await import(`./panels/${name}.mjs`)).default(el, ctx);
    if (data) made.update(data);
    made.draw?.(tick);
  };
  const watch = new IntersectionObserver((seen) => seen[0].isIntersecting && load(), { rootMargin: "200px" });
  watch.observe(el);
  if (name === "table") setTimeout(load, 4000); // for print and search
  return {
    update: (panel) => [(data = panel), made?.update?.(panel)],
    draw: (now) => [(tick = now), made?.draw?.(now)],
    theme: () => made?.theme?.(),
    close: () => made?.close?.(),
  };
};

const KINDS = { metric, text };
// The module of a page's picture is there already and draws at once.
for (const name of ["bars", "blocks", "gantt", "heat", "matrix", "plot", "table", "tables", "tree"]) KINDS[name] = globalThis.panels?.[name] ?? lazy(name);

/** JSON with columns (`$`: in `buffers`; `$b64`: in place) → the same with typed arrays. */
export function decode(value, buffers) {
  if (Array.isArray(value)) return value.map((item) => decode(item, buffers));
  if (value === null || typeof value !== "object") return value;
  const { $, $b64, type, n } = value;
  if ($ == null && $b64 == null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decode(item, buffers)]));
  const text = atob($b64 ?? "");
  const bytes = $b64 == null ? buffers[$] : new ArrayBuffer(text.length);
  for (let i = 0, into = new Uint8Array(bytes); i < text.length; i++) into[i] = text.charCodeAt(i);
  return new (type === "i32" ? Int32Array : Float32Array)(bytes, 0, n);
}

/** The panels of one frame. `areas`: area → element. Panels add pools and grids to `ctx`. */
export class View {
  constructor(areas, seek) {
    this.areas = areas;
    this.panels = new Map();
    this.ctx = { seek, pools: {}, grids: new Set() };
    addEventListener("theme", () => this.panels.forEach((panel) => panel.theme?.()));
  }

  /** Show a decoded frame, words after a moment or `now`; panels that were there before are updated in place. */
  show(frame, now) {
    if (!this.panels.size) for (const el of Object.values(this.areas)) el.replaceChildren();
    const places = new Map();
    const later = []; // words follow when a drag rests
    const old = this.panels;
    this.panels = new Map();
    this.ctx.cells = Math.max(...frame.panels.map((p) => (p.kind === "blocks" ? p.count : 1)));
    for (const data of frame.panels) {
      const area = this.areas[data.area];
      if (!area || !KINDS[data.kind]) continue;
      const key = `${data.kind} ${data.id}`;
      const panel = old.get(key) ?? this.create(data);
      old.delete(key);
      this.panels.set(key, panel);
      const place = places.get(area) ?? 0;
      places.set(area, place + 1);
      if (area.children[place] !== panel.el) area.insertBefore(panel.el, area.children[place] ?? null);
      if (data.kind !== "metric") tell(panel.el.firstChild, data.title);
      if (now || !this.frame || /tiles|stage/.test(data.area)) panel.update(data);
      else later.push(() => panel.update(data));
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const update of later) update();
      this.draw(this.tick);
    }, 120);
    old.forEach((panel) => {
      panel.el.remove();
      panel.close?.();
    });
    this.frame = frame;
  }

  create({ kind }) {
    const el = kind === "metric" ? h("div", { className: "tile" }) : h("section", { className: "panel" }, h("h2"));
    el.dataset.kind = kind;
    return Object.assign(KINDS[kind](el, this.ctx), { el });
  }

  draw(tick) {
    this.tick = tick;
    if (this.frame) this.panels.forEach((panel) => panel.draw?.(Math.min(tick, this.frame.clock?.end ?? 0)));
  }
}
