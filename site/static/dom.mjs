// What every page uses: elements, numbers, colours and theme, dialogs, files.

export const $ = (selector, root = document) => root.querySelector(selector);

/** An element: `on…` are listeners, known names properties, the rest attributes. */
export function h(tag, props = {}, ...kids) {
  const el = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else if (key in el) el[key] = value;
    else el.setAttribute(key, value);
  }
  el.append(...kids.flat().filter((kid) => kid != null));
  return el;
}

const formats = [];

/** −1234.5 → "−1,234.5" with that many decimals; null → "–"; text stays text. */
export function num(value, digits = 0) {
  if (typeof value !== "number") return value ?? "–";
  formats[digits] ??= new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return formats[digits].format(value).replace("-", "−");
}

/** Change a text only if it is another one: what stays costs no layout. */
export const tell = (el, text) => el.textContent === text || (el.textContent = text);

/** Entries of the sorted `list` that are ≤ `value`. */
export function upto(list, value) {
  let low = 0;
  for (let high = list.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const config = JSON.parse($("#config").textContent);

/** A response, or an Error that says which file is missing and what to do. */
export async function get(url) {
  const reply = await fetch(url).catch(() => null);
  if (reply?.ok) return reply;
  const why = reply ? `answered ${reply.status}` : "could not be reached";
  throw new Error(`${String(url).split("/").pop()} ${why}; check the connection and try again`);
}

export const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
let seen = {};

/** A colour token ("decode", "ink", "c3") in the current theme. */
export const colour = (token) => (seen[token] ??= getComputedStyle(root).getPropertyValue(`--${token}`).trim() || "#888");

/** A conversation keeps its hue: eight colours, then the same with other patterns. */
export const hue = (owner) => colour(owner < 0 ? "muted" : `c${owner % 8}`);

/** "light", "dark", or the system's; panels hear the event "theme". */
export function theme(name) {
  root.dataset.theme = name === "light" || name === "dark" ? name : "";
  seen = {};
  dispatchEvent(new Event("theme"));
}
export const otherTheme = () => ((root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
dark.addEventListener("change", () => theme(root.dataset.theme));

/** Once per page: dialogs open by [data-dialog] and close beside them; an offline copy when all is quiet. */
export function setUp() {
  addEventListener("click", ({ target }) => {
    const name = target.closest?.("[data-dialog]")?.dataset.dialog;
    if (name) $(`#${name}`).showModal();
    else if (target.tagName === "DIALOG") target.close();
  });
  const register = () => navigator.serviceWorker?.register(config.sw).catch(() => {});
  const later = () => setTimeout(register, 3000);
  if (config.sw) document.readyState === "complete" ? later() : addEventListener("load", later);
}
