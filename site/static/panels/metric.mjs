// A number tile: value with unit, basis, and, where a receipt holds the number, a mark that opens it.

import { colour, h, num } from "../dom.mjs";

/** The series' value at a tick: held between two points, or linear. */
function at({ t, series, linear, value }, tick) {
  if (!series?.length) return value;
  let low = 0;
  let high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] <= tick) low = middle + 1;
    else high = middle;
  }
  const i = Math.max(0, low - 1);
  if (!linear || low === 0 || low === t.length) return series[i];
  return series[i] + ((series[low] - series[i]) * (tick - t[i])) / (t[low] - t[i]);
}

export default (el, ctx) => {
  const label = h("p", { class: "label" });
  const figure = h("span", { class: "figure" });
  const unit = h("span", { class: "unit" });
  const basis = h("p", { class: "basis" });
  el.append(label, h("p", { class: "value" }, figure, " ", unit), basis);
  let data;
  const tone = () => {
    label.style.setProperty("--tone", data.tone ? colour(data.tone) : "transparent");
    label.classList.toggle("toned", !!data.tone);
  };
  return {
    theme: () => data && tone(),
    update(panel) {
      const before = data?.claim;
      data = panel;
      label.textContent = panel.title;
      unit.textContent = panel.unit;
      el.title = panel.note;
      tone();
      if (basis.firstChild && before === panel.claim && basis.firstChild.data === panel.basis) return;
      basis.replaceChildren(panel.basis);
      if (!panel.claim) return;
      const open = () => ctx.verify(panel.claim);
      basis.append(" · ", h("button", { type: "button", class: "receipt", "aria-label": `Verify ${panel.title}`, onclick: open }, "receipt"));
    },
    draw(tick) {
      const text = num(at(data, tick), data.digits);
      if (figure.textContent !== text) figure.textContent = text;
    },
  };
};
