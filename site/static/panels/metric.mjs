// A number tile: value, unit, and where the number comes from.

import { $, colour, h, num, tell, upto } from "../dom.mjs";

/** The series' value at a tick: held from point to point, or linear. */
function at({ t, series, linear, value }, tick) {
  if (!series?.length) return value;
  const next = upto(t, tick);
  const i = Math.max(0, next - 1);
  if (!linear || !next || next === t.length) return series[i];
  return series[i] + ((series[next] - series[i]) * (tick - t[i])) / (t[next] - t[i]);
}

/** Where numbers come from: a word, and the receipt that holds them or, without one, what the word means. */
export function basis(panel) {
  const { basis, claim, title, how } = panel;
  const button = (text, props) => h("button", { type: "button", className: "receipt", ...props }, text);
  if (claim) return [basis, " · ", button("receipt", { "data-claim": claim, ariaLabel: `Receipt of ${title}` })];
  const explain = async () => (await import("../how.mjs")).explain(panel);
  if (how?.length) return [basis, " · ", button("explain", { onclick: explain, ariaLabel: `Explain ${title}` })];
  return [button(basis, { "data-dialog": "help", title: $(`#basis-${basis}`)?.textContent ?? "" })];
}

export default (el) => {
  const label = h("p", { className: "label" });
  const figure = h("span", { className: "figure" });
  const unit = h("span", { className: "unit" });
  const source = h("p", { className: "basis" });
  el.append(label, h("p", { className: "value" }, figure, " ", unit), source);
  let data = {};
  const theme = () => label.style.setProperty("--tone", data.tone && colour(data.tone));
  return {
    theme,
    update(panel) {
      const same = panel.claim === data.claim && panel.basis === data.basis && !panel.how.length && !data.how?.length;
      data = panel;
      tell(label, panel.title);
      label.classList.toggle("toned", !!panel.tone);
      tell(unit, panel.unit);
      el.title = panel.note;
      theme();
      if (!same) source.replaceChildren(...basis(panel));
    },
    draw(tick) {
      tell(figure, num(at(data, tick), data.digits));
    },
  };
};
