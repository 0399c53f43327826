// "Explain": the formula behind a number, with the values in it.

import { h } from "./dom.mjs";

let dialog;

/** Show a metric's `how`: [term, value] lines, the first of them the formula itself. */
export function explain({ title, how, note }) {
  dialog ??= document.body.appendChild(h("dialog", { "aria-labelledby": "how-title" }));
  const [[formula, result], ...terms] = how;
  const close = h("form", { method: "dialog" }, h("button", { className: "quiet" }, "Close"));
  dialog.replaceChildren(
    h("header", {}, h("h2", { id: "how-title" }, title), close),
    h("div", { className: "body" }, h("p", {}, h("code", {}, formula)), h("p", {}, h("b", {}, result)),
      h("dl", {}, terms.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)])), note && h("p", {}, note)),
  );
  dialog.showModal();
}
