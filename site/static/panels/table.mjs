// A small static table with units in its headings, the basis of its numbers and one emphasised row.

import { h, num } from "../dom.mjs";

export default (el) => {
  const box = h("div", { class: "scroll", tabIndex: 0, role: "region" });
  const note = h("p", { class: "caption" });
  el.append(box, note);
  return {
    update({ title, columns, digits, rows, basis, caption, mark }) {
      const head = columns.map(([name, unit], i) =>
        h("th", { scope: "col", class: typeof rows[0]?.[i] === "number" ? "n" : "" }, name, unit ? h("small", {}, ` ${unit}`) : null));
      const cell = (value, i) => h(i ? "td" : "th", { scope: i ? null : "row", class: typeof value === "number" ? "n" : "" }, num(value, digits[i]));
      const body = rows.map((row, r) => h("tr", { class: r === mark ? "mark" : "" }, ...row.map(cell)));
      box.setAttribute("aria-label", title);
      box.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)));
      note.replaceChildren(caption ? `${caption} ` : "", h("span", { class: "tag" }, basis));
    },
  };
};
