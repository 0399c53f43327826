// The controls that the template rendered: read and write a state as URL text, show problems beside the fields.

import { $, config } from "./dom.mjs";
import { byDefault } from "./state.mjs";

const fields = ({ key }) => [$(`#c-${key}`), $(`#r-${key}`)];

function put(spec, text) {
  const [field, range] = fields(spec);
  if (spec.form === "switch") field.checked = text === "1";
  else field.value = text;
  if (!range) return;
  if (Number.isFinite(+text)) range.value = spec.scale === "log2" ? Math.log2(text) : text;
  range.setAttribute("aria-valuetext", `${text} ${spec.unit}`);
}

/** `changed(key, text, done)`: the visitor set a value; `done` unless it is a drag in between. */
export function controls(form, changed) {
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const spec of config.controls) {
    const [field, range] = fields(spec);
    const set = (text, done) => {
      put(spec, text);
      changed(spec.key, text, done);
    };
    field.addEventListener("change", () => set(spec.form === "switch" ? `${+field.checked}` : field.value.trim(), true));
    for (const type of ["input", "change"]) {
      range?.addEventListener(type, () => set(`${spec.scale === "log2" ? 2 ** range.value : range.value}`, type === "change"));
    }
  }
  return {
    set: (state) => config.controls.forEach((spec) => put(spec, state[spec.key] ?? byDefault(spec))),

    /** Sentences by key; "" is about the state as a whole. */
    problems(found) {
      for (const spec of [{ key: "" }, ...config.controls]) {
        const text = found[spec.key] ?? "";
        $(`#p-${spec.key || "form"}`).textContent = text;
        fields(spec)[0]?.setAttribute("aria-invalid", !!text);
      }
    },
  };
}
