// The URL hash holds all that is needed to see the same picture again: A's state, B's (keys with "b."), the clock's
// tick, theme and embed. Defaults are left out and unknown keys ignored, so that old links stay alive.

const HUB = "https://huggingface.co";

/** Text of a control's default, as the core writes it in a URL. */
export function defaultText({ form, default: value }) {
  return form === "switch" ? (value ? "1" : "0") : String(value);
}

/** `state` without the values that are defaults. */
export function trim(controls, state) {
  return Object.fromEntries(controls.filter((c) => c.key in state && state[c.key] !== defaultText(c)).map((c) => [c.key, state[c.key]]));
}

/** Two states of the same controls are equal when their trimmed forms are. */
export function same(controls, a, b) {
  return JSON.stringify(trim(controls, a)) === JSON.stringify(trim(controls, b));
}

/** {a, b or null, t or null, theme, embed} from the address. */
export function read(controls) {
  const keys = new Set(controls.map((c) => c.key));
  const query = new URLSearchParams(location.search);
  const found = { a: {}, b: null, t: null, theme: query.get("theme") ?? query.get("__theme") ?? "", embed: query.has("embed") };
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (keys.has(key)) found.a[key] = value;
    else if (key === "compare" && value === "1") found.b ??= {};
    else if (key.startsWith("b.") && keys.has(key.slice(2))) (found.b ??= {})[key.slice(2)] = value;
    else if (key === "t" && /^\d{1,9}$/.test(value)) found.t = Number(value);
    else if (key === "theme" || key === "__theme") found.theme = value;
    else if (key === "embed") found.embed = value !== "0";
  }
  return found;
}

/** The hash that `read` reads back, "" when everything is default. */
export function hash(controls, { a, b, t, theme, embed }) {
  const query = new URLSearchParams(trim(controls, a));
  if (b) {
    const other = Object.entries(trim(controls, b));
    if (!other.length) query.set("compare", "1");
    for (const [key, value] of other) query.set(`b.${key}`, value);
  }
  if (t != null) query.set("t", t);
  if (theme) query.set("theme", theme);
  if (embed) query.set("embed", "1");
  const text = query.toString();
  return text && `#${text}`;
}

/** Put the hash into the address (a new history entry when `push`) and, inside a Space, into the hub page's address. */
export function write(text, push) {
  if (text === location.hash) return;
  try {
    history[push ? "pushState" : "replaceState"](null, "", text || location.pathname + location.search);
    const hub = location.ancestorOrigins?.contains(HUB) ?? document.referrer.startsWith(HUB);
    if (window.parent !== window && hub) window.parent.postMessage({ queryString: location.search.slice(1), hash: text }, HUB);
  } catch {
    // A browser that refuses history entries (too many, or a sandbox) loses the link, not the page.
  }
}
