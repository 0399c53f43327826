// A small table: units in its headings, the basis of its numbers, one emphasised row.

import { h, num } from "../dom.mjs";
import { basis } from "./metric.mjs";

export default (el) => {
  const box = h("div", { className: "scroll", tabIndex: 0, role: "region" });
  const note = h("p", { className: "caption" });
  el.append(box, note);
  let before;
  return {
    update(panel) {
      if (before === (before = JSON.stringify(panel))) return;
      const { title, columns, digits, rows, caption, mark } = panel;
      const kind = (i) => (rows.some((row) => typeof row[i] === "number") ? "n" : "");
      const head = columns.map(([name, unit], i) =>
        h("th", { scope: "col", className: kind(i) }, name, unit && h("small", {}, ` ${unit}`)));
      const cell = (value, i) => h(i ? "td" : "th", { className: kind(i), ...(i ? {} : { scope: "row" }) }, num(value, digits[i]));
      const body = rows.map((row, r) => h("tr", { className: r === mark ? "mark" : "" }, row.map(cell)));
      box.setAttribute("aria-label", title);
      box.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
      note.replaceChildren(caption, " ", h("span", { className: "tag" }, basis(panel)));
    },
  };
};
