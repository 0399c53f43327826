// The URL hash holds what is needed to see the same picture again: A's state, B's ("b." keys), the clock, theme, embed.
// Defaults are left out, unknown keys ignored.

import { config } from "./dom.mjs";

const HUB = "https://huggingface.co";
const specs = config.controls ?? [];

/** A control's default as the core writes it in a URL. */
export const byDefault = ({ form, default: value }) => (form === "switch" ? `${+value}` : `${value}`);

/** A state without values that are defaults or no control's. */
export const trim = (state) =>
  Object.fromEntries(specs.filter((c) => (state[c.key] ?? byDefault(c)) !== byDefault(c)).map(({ key }) => [key, state[key]]));

export const same = (a, b) => JSON.stringify(trim(a)) === JSON.stringify(trim(b));

/** {a, b or null, t, theme, embed} from the address; `odd`: what stands there for t and theme and is neither. */
export function read() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const all = new URLSearchParams(`${location.search.slice(1)}&${hash}`);
  const part = (prefix) =>
    Object.fromEntries(specs.filter((c) => hash.has(prefix + c.key)).map(({ key }) => [key, hash.get(prefix + key)]));
  const b = part("b.");
  const t = hash.get("t");
  const theme = all.get("theme") ?? all.get("__theme") ?? "";
  const isTick = /^\d{1,9}$/.test(t);
  const isTheme = ["", "light", "dark", "system"].includes(theme);
  return {
    a: part(""),
    b: hash.has("compare") || Object.keys(b).length ? b : null,
    t: isTick ? +t : undefined,
    theme: isTheme ? theme : "",
    embed: all.has("embed"),
    odd: [!isTick && t && `t=${t}`, !isTheme && `theme=${theme}`].filter(Boolean),
  };
}

/** Put a view into the address (a new history entry when `push`) and, inside a Space, into the hub page's address. */
export function write({ a, b, t, theme, embed }, push) {
  const query = new URLSearchParams(trim(a));
  if (b) query.set("compare", 1);
  for (const [key, value] of Object.entries(trim(b ?? {}))) query.set(`b.${key}`, value);
  if (t != null) query.set("t", t);
  if (theme) query.set("theme", theme);
  if (embed) query.set("embed", 1);
  const hash = `${query}` && `#${query}`;
  if (hash === location.hash) return;
  try {
    history[push ? "pushState" : "replaceState"](null, "", hash || location.pathname + location.search);
    const hub = location.ancestorOrigins?.contains(HUB) ?? document.referrer.startsWith(HUB);
    if (parent !== window && hub) parent.postMessage({ queryString: location.search.slice(1), hash }, HUB);
  } catch {
    // A browser that refuses more history entries costs the link, not the page.
  }
}
