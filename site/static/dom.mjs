// Small helpers that every page uses: elements, numbers, theme, one dialog, copying and saving.

export const $ = (selector, root = document) => root.querySelector(selector);

/** An element: properties by name, `on…` as listeners, everything else as attributes; null children are left out. */
export function h(tag, props = {}, ...kids) {
  const el = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value == null) continue;
    if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else if (key === "class") el.className = value;
    else if (key in el) el[key] = value;
    else el.setAttribute(key, value);
  }
  el.append(...kids.flat().filter((kid) => kid != null));
  return el;
}

const formats = new Map();

/** 1234.5 → "1,234.5" with a fixed number of decimals; null → "–"; text stays text. */
export function num(value, digits = 0) {
  if (value == null) return "–";
  if (typeof value !== "number") return String(value);
  if (!formats.has(digits)) {
    formats.set(digits, new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  }
  return formats.get(digits).format(value);
}

export const json = (id) => JSON.parse($(`#${id}`)?.textContent || "null");

/** A response, or an Error that says which file could not be had and what to do. */
export async function get(url) {
  const reply = await fetch(url).catch(() => null);
  if (reply?.ok) return reply;
  const why = reply ? `answered ${reply.status}` : "could not be reached";
  throw new Error(`${new URL(url, document.baseURI).pathname.split("/").pop()} ${why}; check the connection and try again`);
}

export const reduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

let palette = null;

/** The value of a colour token ("decode", "ink", "c3") in the current theme. */
export function colour(token) {
  palette ??= { style: getComputedStyle(document.documentElement), seen: new Map() };
  if (!palette.seen.has(token)) palette.seen.set(token, palette.style.getPropertyValue(`--${token}`).trim() || "#888");
  return palette.seen.get(token);
}

/** Every conversation keeps its hue: eight colours, then the same ones with another pattern. */
export const hue = (owner) => (owner < 0 ? "muted" : `c${owner % 8}`);

/** Set the theme ("light", "dark" or "" for the system's) and tell every panel. */
export function theme(name) {
  if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  palette = null;
  document.dispatchEvent(new Event("theme"));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(document.documentElement.dataset.theme));

export const isDark = () =>
  (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

/** Buttons with data-dialog open that dialog; a click beside a dialog closes it. */
export function dialogs() {
  document.addEventListener("click", ({ target }) => {
    const name = target.closest?.("[data-dialog]")?.dataset.dialog;
    if (name) $(`#${name}`).showModal();
    else if (target.tagName === "DIALOG") target.close();
  });
}

/** Register the service worker where there is one; a page works the same without it. */
export function offline(url) {
  if (!url || !("serviceWorker" in navigator)) return;
  addEventListener("load", () => setTimeout(() => navigator.serviceWorker.register(url).catch(() => {}), 3000));
}
