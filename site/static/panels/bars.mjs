// Stacked bars as SVG, which prints and needs no canvas; a row is chosen by its name.

import { h, num } from "../dom.mjs";
import { basis } from "./metric.mjs";

const WIDE = 44; // px: room for a number inside a part

function svg(tag, props, ...kids) {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(props)) el.setAttribute(key, value);
  el.append(...kids);
  return el;
}

const make = (el) => {
  const body = h("div", { className: "bars" });
  const legend = h("ul", { className: "legend" });
  const note = h("p", { className: "caption" });
  for (const old of [...el.children].slice(1)) old.remove();
  el.append(body, legend, note);
  let before;
  return {
    update(panel) {
      if (before === (before = JSON.stringify(panel))) return;
      const { parts, rows, unit, digits, limit, limit_name, caption, mark } = panel;
      const full = 1.02 * Math.max(limit, ...rows.map(({ values }) => values.reduce((a, b) => a + b, 0)));
      const px = Math.max(1, el.clientWidth - 200) / full;
      const share = (value) => `${(100 * value) / full}%`;
      const bar = ({ values }) => {
        let at = 0;
        const kids = values.flatMap((value, i) => {
          const x = at;
          at += value;
          const rect = svg("rect", { x: share(x), width: share(value), height: 24, class: `p-${parts[i][1]}` });
          if (value * px < WIDE) return [rect];
          return [rect, svg("text", { x: share(x + value / 2), y: 17, class: `on-${parts[i][1]}` }, num(value, digits))];
        });
        return svg("svg", { height: 32, "aria-hidden": true }, ...kids,
          svg("rect", { x: share(limit), width: 2, height: 32, class: "limit" }));
      };
      const row = (data, i) => {
        const words = parts.map(([name], k) => `${name} ${num(data.values[k], digits)}`).join(", ");
        const name = h("button", { type: "button", "aria-pressed": i === mark, "data-state": JSON.stringify(data.state) }, data.name);
        return h("div", { className: "bar-row" }, name, bar(data), h("span", { className: "vh" }, `${words} ${unit}; `), h("span", { className: "end" }, data.end));
      };
      body.replaceChildren(...rows.map(row));
      const mine = parts.map(([name, tone]) => h("li", {}, h("i", { className: `key k-${tone}` }), name));
      legend.replaceChildren(...mine, h("li", {}, h("i", { className: "key k-limit" }), `${limit_name}: ${num(limit, digits)} ${unit}`));
      note.replaceChildren(caption, " ", h("span", { className: "tag" }, basis(panel)));
    },
  };
};

export default make;
(globalThis.panels ??= {}).bars = make; // for a page that loads it first
