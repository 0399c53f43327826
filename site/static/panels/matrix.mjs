// A table to choose from: click a heading to sort, type to filter, tick rows to keep them on top.

import { h, num } from "../dom.mjs";
import { basis } from "./metric.mjs";

const order = (a, b) => (a == null) - (b == null) || (typeof a === "number" ? a - b : `${a}`.localeCompare(`${b}`));

export default (el) => {
  for (const old of [...el.children].slice(1)) old.remove();
  const filter = h("input", { type: "search", placeholder: "e.g. H200, or 8 ×", ariaLabel: "Filter rows" });
  const told = h("span", { role: "status" });
  const box = h("div", { className: "scroll tall", tabIndex: 0, role: "region" });
  const note = h("p", { className: "caption" });
  el.append(h("p", { className: "row filter" }, h("label", {}, "Filter ", filter), told), box, note);
  const pinned = new Set();
  let [data, by, down, before] = [null, -1, false, ""];

  const head = ([name, unit], i) => {
    const arrow = i !== by ? "" : down ? " ↓" : " ↑";
    const sort = () => {
      [by, down] = i !== by ? [i, false] : down ? [-1, false] : [i, true];
      draw();
      box.querySelectorAll("thead button")[i].focus();
    };
    const button = h("button", { type: "button", onclick: sort }, name, unit && h("small", {}, ` ${unit}`), arrow);
    return h("th", { scope: "col", "aria-sort": i !== by ? "none" : down ? "descending" : "ascending", className: data.digits[i] < 0 ? "" : "n" }, button);
  };

  const line = (r) => {
    const row = data.rows[r];
    const pin = h("input", { type: "checkbox", checked: pinned.has(row[0]), ariaLabel: `Keep ${row[0]} on top`, onchange: ({ target }) => {
      pinned[target.checked ? "add" : "delete"](row[0]);
      draw();
    } });
    const name = h("button", { type: "button", className: "pick", "data-state": JSON.stringify(data.states[r]) }, row[0]);
    const cells = row.slice(1).map((value, i) => h("td", { className: data.digits[i + 1] < 0 ? "" : "n" }, num(value, Math.max(0, data.digits[i + 1]))));
    return h("tr", { className: [r === data.mark ? "mark" : "", pinned.has(row[0]) ? "pin" : ""].join(" ") }, h("td", {}, pin), h("th", { scope: "row" }, name), cells);
  };

  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/);
    const all = data.rows.map((row, r) => r);
    const fits = (r) => words.every((word) => data.rows[r].join(" ").toLowerCase().includes(word));
    const shown = all.filter((r) => pinned.has(data.rows[r][0]) || fits(r));
    if (by >= 0) {
      const [there, gone] = [shown.filter((r) => data.rows[r][by] != null), shown.filter((r) => data.rows[r][by] == null)];
      there.sort((a, b) => order(data.rows[a][by], data.rows[b][by]) * (down ? -1 : 1));
      shown.splice(0, Infinity, ...there, ...gone);
    }
    const top = shown.filter((r) => pinned.has(data.rows[r][0]));
    const rest = shown.filter((r) => !pinned.has(data.rows[r][0]));
    told.textContent = shown.length === all.length ? `${all.length} rows` : `${shown.length} of ${all.length} rows`;
    const heads = h("tr", {}, h("th", { scope: "col" }, h("span", { className: "vh" }, "Pinned")), data.columns.map(head));
    box.replaceChildren(h("table", {}, h("thead", {}, heads), h("tbody", {}, [...top, ...rest].map(line))));
  }
  filter.addEventListener("input", draw);

  return {
    update(panel) {
      if (before === (before = JSON.stringify(panel))) return;
      const moved = panel.rows[panel.mark]?.[0] !== data?.rows[data.mark]?.[0];
      data = panel;
      box.setAttribute("aria-label", panel.title);
      note.replaceChildren(panel.caption, " ", h("span", { className: "tag" }, basis(panel)));
      draw();
      const mark = box.querySelector(".mark");
      if (mark && moved) box.scrollTop = mark.offsetTop - box.clientHeight / 2;
    },
  };
};
