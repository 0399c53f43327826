// A number tile: value with unit, basis, and, where a receipt holds the number, a mark that opens it.

import { colour, h, num, tell, upto } from "../dom.mjs";

/** The series' value at a tick: held from point to point, or linear. */
function at({ t, series, linear, value }, tick) {
  if (!series?.length) return value;
  const next = upto(t, tick);
  const i = Math.max(0, next - 1);
  if (!linear || !next || next === t.length) return series[i];
  return series[i] + ((series[next] - series[i]) * (tick - t[i])) / (t[next] - t[i]);
}

export default (el, ctx) => {
  const label = h("p", { className: "label" });
  const figure = h("span", { className: "figure" });
  const unit = h("span", { className: "unit" });
  const basis = h("p", { className: "basis" });
  el.append(label, h("p", { className: "value" }, figure, " ", unit), basis);
  let data = {};
  const theme = () => label.style.setProperty("--tone", data.tone && colour(data.tone));
  return {
    theme,
    update(panel) {
      const same = panel.claim === data.claim && panel.basis === data.basis;
      data = panel;
      tell(label, panel.title);
      label.classList.toggle("toned", !!panel.tone);
      tell(unit, panel.unit);
      el.title = panel.note;
      theme();
      if (same) return;
      const open = { type: "button", className: "receipt", ariaLabel: `Receipt of ${panel.title}`, onclick: () => ctx.verify(panel.claim) };
      basis.replaceChildren(panel.basis, ...(panel.claim ? [" · ", h("button", open, "receipt")] : []));
    },
    draw(tick) {
      tell(figure, num(at(data, tick), data.digits));
    },
  };
};
