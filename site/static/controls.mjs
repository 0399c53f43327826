// The form of controls that the template rendered: reads and writes a state as URL text, shows problems beside fields.

import { $ } from "./dom.mjs";
import { defaultText } from "./state.mjs";

export class Controls {
  /** `changed(key, text, done)`: the visitor set a value; `done` when it is not a drag in between. */
  constructor(form, specs, changed) {
    this.form = form;
    this.specs = specs;
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const spec of specs) {
      const [field, range] = this.fields(spec);
      const say = (value, done) => changed(spec.key, value, done);
      field.addEventListener("change", () => {
        this.put(spec, spec.form === "switch" ? (field.checked ? "1" : "0") : field.value);
        say(spec.form === "switch" ? (field.checked ? "1" : "0") : field.value.trim(), true);
      });
      for (const type of ["input", "change"]) {
        range?.addEventListener(type, () => {
          const value = spec.scale === "log2" ? 2 ** range.value : Number(range.value);
          field.value = Number(value.toPrecision(9));
          this.speak(spec, field, range);
          say(field.value, type === "change");
        });
      }
    }
  }

  fields({ key }) {
    return [$(`#c-${key}`, this.form), $(`#r-${key}`, this.form)];
  }

  put(spec, text) {
    const [field, range] = this.fields(spec);
    if (spec.form === "switch") field.checked = text === "1";
    else field.value = text;
    if (!range) return;
    if (text !== "" && Number.isFinite(Number(text))) range.value = spec.scale === "log2" ? Math.log2(text) : text;
    this.speak(spec, field, range);
  }

  speak(spec, field, range) {
    range.setAttribute("aria-valuetext", `${field.value} ${spec.unit}`.trim());
  }

  set(state) {
    for (const spec of this.specs) this.put(spec, state[spec.key] ?? defaultText(spec));
  }

  /** Sentences by key; "" is about the state as a whole. */
  problems(found) {
    for (const spec of [{ key: "" }, ...this.specs]) {
      const line = $(`#p-${spec.key || "form"}`, this.form);
      const text = found[spec.key] ?? "";
      if (line.textContent !== text) line.textContent = text;
      this.fields(spec)[0]?.setAttribute("aria-invalid", !!text);
    }
  }
}
