// A studio page: the baked frame at once, then Python in a worker; controls, presets, A/B, clock, address.

import { controls } from "./controls.mjs";
import { $, config, get, num, otherTheme, setUp, tell, theme } from "./dom.mjs";
import { View, decode } from "./frame.mjs";
import { Link } from "./link.mjs";
import { Player } from "./player.mjs";
import { read, same, trim, write } from "./state.mjs";

const { presets, studio } = config;
const html = document.documentElement;
const LIVE = "Live: the core runs in this tab.";
let address = read();
let side = "a"; // whose controls are shown
const states = {};

const verify = async (claim) => (await import("./verify.mjs")).show(config, link, claim);
const view = (areas) => {
  const found = Object.entries(areas).map(([area, id]) => [area, $(`#${id}`)]);
  return new View(Object.fromEntries(found), { verify, seek: (tick) => player.seek(tick, true) });
};
const views = {
  a: view({ tiles: "tiles-a", stage: "stage-a", side: "side", below: "below" }),
  b: view({ tiles: "tiles-b", stage: "stage-b" }),
  file: view({ tiles: "file-tiles", stage: "file-stage", side: "file-below", below: "file-below" }),
};
const player = new Player($("#transport"), (tick) => {
  for (const one of Object.values(views)) one.draw(tick);
  remember();
});
const form = controls($("#controls"), (key, text, done) => {
  const state = trim({ ...states[side], [key]: text });
  if (done && same(state, states[side])) return remember(true);
  states[side] = state;
  refresh(side, done);
});

const link = new Link(config, {
  stage({ label, bytes, total, ms }) {
    const size = bytes ? `${num(bytes / 1e6, 1)}${total ? ` of ${num(total / 1e6, 1)}` : ""} MB · ` : "";
    say(label, false, `${size}${num(ms)} ms`);
  },
  async ready({ ms, path }) {
    $("#boot").textContent = `Python started here in ${num(ms)} ms (${path}).`;
    say(LIVE, false, `Python took ${num(ms)} ms.`);
    await Promise.all([refresh("a"), states.b && refresh("b")]);
    html.dataset.live = Math.round(performance.now());
    performance.mark("live");
    // Warm up: the engine compiles what runs often.
    for (let i = 0; i < 12 && link.live; i++) await link.latest(0, ...wanted({}));
  },
  failed: ({ stage, name, message, fix }) => say(`${name} (${stage}): ${message}. ${fix} The picture stays.`, true),
  slow: (on) => ($("#stop").hidden = !on),
});

/** The status line: `text` is read aloud, `more` only shown. When `bad` it is an error; `again` offers another try. */
function say(text, bad = false, more = "", again = bad) {
  tell($("#status span"), text);
  $("#more").textContent = more;
  $("#status").classList.toggle("bad", bad);
  $("#retry").hidden = !again;
}

let writing;
/** Keep the address up to date: at once with `push`, else when things have been quiet for a moment. */
function remember(push = false) {
  clearTimeout(writing);
  const put = () => {
    const t = player.moved && player.tick !== views.a.frame?.clock?.start ? player.tick : null;
    write({ ...address, ...states, t }, push);
  };
  if (push) put();
  else if (!player.playing) writing = setTimeout(put, 300);
}

const wanted = (state) => ["view", { studio: studio.name, state }];
let ask = (slot, state) => link.latest(slot, ...wanted(state));
let foresight;
for (const type of ["pointerover", "focusin"]) {
  $("#controls").addEventListener(type, async ({ target }) => {
    if (target.type !== "range" || !link.live) return;
    foresight ??= import("./ahead.mjs").then(({ ahead }) => ahead(ask, (state) => link.call(...wanted(state))));
    const { near, ask: known } = await foresight;
    ask = known;
    near(target, states[side]);
  });
}

/** Ask for the picture of a side's state. Problems are said beside the controls; the old picture stays. */
async function refresh(name, push = false) {
  remember(push);
  chips();
  const state = states[name];
  const asked = performance.now();
  try {
    const preset = Object.values(presets).find((p) => same(p.state, state));
    if (!link.live && preset) return show(name, decode(await (await get(preset.frame)).json()));
    const reply = await ask(name, state);
    if (!reply || !states[name]) return;
    if (name === side) form.problems({});
    if ($("#status.bad")) say(LIVE);
    show(name, decode(reply.header.frame, reply.buffers));
    requestAnimationFrame(() => (html.dataset.picture = Math.round(performance.now() - asked)));
  } catch ({ name: kind, message, problems = {} }) {
    if (kind === "Stopped") return;
    if (name === side) form.problems(problems);
    say(`${message}. The picture shows the last good state.`, true, "", !Object.keys(problems).length);
  }
}

let heard;
function show(name, frame) {
  const start = views[name].frame?.clock?.start;
  views[name].show(frame);
  player.clocks([views.a, views.b].flatMap(({ frame }) => frame?.clock ?? []));
  if (!player.moved && frame.clock && frame.clock.start !== start) player.seek(frame.clock.start);
  clearTimeout(heard);
  heard = setTimeout(() => ($("#headline").textContent = frame.headline), 600);
}

function press(key, value) {
  for (const el of document.querySelectorAll(`[data-${key}]`)) el.setAttribute("aria-pressed", el.dataset[key] === value);
}

function chips() {
  const current = Object.keys(presets).find((name) => same(presets[name].state, states[side]));
  press("preset", current);
  $("#note").textContent = presets[current]?.note ?? "Your own settings, held in this page’s address.";
}

function pick(name) {
  side = name;
  press("side", side);
  form.set(states[side]);
  form.problems({});
  chips();
}

/** Show or hide B; a new B starts as a copy of A. */
function compare(on) {
  states.b = on ? (states.b ?? { ...states.a }) : null;
  html.classList.toggle("ab", on);
  $("#compare").setAttribute("aria-pressed", on);
  if (!on) show("b", { panels: [] });
  pick(on ? side : "a");
}

const drop = async (file) => file && (await import("./drop.mjs")).drop(file, link, views.file, player.tick, say);

const ACTIONS = {
  theme() {
    theme((address.theme = otherTheme()));
    remember();
  },
  compare() {
    side = states.b ? "a" : "b";
    compare(!states.b);
    if (states.b) refresh("b", true);
    else remember(true);
  },
  sheet: () => html.classList.toggle("sheet"),
  retry: () => (link.live ? refresh(side) : link.again()),
  stop: () => [link.end(), link.start()],
  file: () => $("#file").click(),
  export: async () => (await import("./export.mjs")).show(link, states[side], side, views[side].frame?.headline ?? ""),
  code() {
    const url = new URL(config.code + (location.hash || "#"), location).href;
    if ($("#code iframe").src !== url) $("#code iframe").src = url;
  },
  reset: () => choose({}),
  full: () => open(location.href.replace(/([#&])embed=1&?/, "$1")),
};

function choose(state) {
  states[side] = { ...state };
  form.set(state);
  refresh(side, true);
}

const KEYS = { " ": "play", ",": "back", ".": "forward", Backspace: "restart" };

function key(event) {
  const { target, key: name } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  if (target.matches("input:not([type=range], [type=checkbox]), select")) return;
  if (name === " " && target.closest("button, summary, a, [type=checkbox]")) return;
  if (name === "?") $("#help").showModal();
  else if (KEYS[name]) player.act(KEYS[name]);
  else return;
  event.preventDefault();
}

/** Take everything from the address. */
function restore() {
  address = read();
  Object.assign(states, { a: address.a, b: address.b });
  theme(address.theme);
  html.classList.toggle("embed", address.embed);
  html.classList.toggle("framed", parent !== window);
  compare(!!states.b);
  player.moved = address.t != null;
  player.seek(address.t ?? views.a.frame.clock?.start ?? 0);
}

show("a", decode(JSON.parse($("#frame").textContent)));
restore();
if (Object.keys(states.a).length && Object.values(presets).some((p) => same(p.state, states.a))) refresh("a");
setUp();
document.addEventListener("keydown", key);
document.addEventListener("click", (event) => {
  const { act, preset, side: name, claim } = event.target.closest("[data-act], [data-preset], [data-side], [data-claim]")?.dataset ?? {};
  if (act) ACTIONS[act]();
  else if (preset) choose(presets[preset].state);
  else if (name) pick(name);
  else if (claim && !event.metaKey && !event.ctrlKey) {
    event.preventDefault();
    verify(claim);
  }
});
addEventListener("popstate", () => {
  restore();
  refresh("a");
  if (states.b) refresh("b");
});
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  drop(event.dataTransfer.files[0]);
});
$("#file").addEventListener("change", ({ target }) => drop(target.files[0]));

// Python starts after the first paint, when the page is idle, and at the first touch or key at the latest.
const start = () => link.start();
requestAnimationFrame(() => setTimeout(() => (window.requestIdleCallback ?? setTimeout)(start, { timeout: 300 })));
for (const type of ["pointerdown", "keydown"]) addEventListener(type, start, { once: true });
