// A studio page: the baked frame at once, then Python in a worker; controls, presets, A/B, clock, address.

import { controls } from "./controls.mjs";
import { $, config, get, num, otherTheme, root, setUp, tell, theme } from "./dom.mjs";
import { View, decode } from "./frame.mjs";
import { Link } from "./link.mjs";
import { Player } from "./player.mjs";
import { read, same, trim, write } from "./state.mjs";

const { presets, studio } = config;
const LIVE = "Live: the core runs in this tab.";
let address = read();
let side = "a"; // whose controls are shown
const states = {};

const seek = (tick) => player.seek(tick, true);
const views = {
  a: new View({ tiles: $("#tiles-a"), stage: $("#stage-a"), side: $("#side"), below: $("#below") }, seek),
  b: new View({ tiles: $("#tiles-b"), stage: $("#stage-b") }, seek),
  rest: new View({ rest: $("#rest") }, seek),
  file: new View({ tiles: $("#file-tiles"), stage: $("#file-stage"), side: $("#file-below"), below: $("#file-below") }, seek),
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
    const size = bytes ? `${num(bytes / 1e6, 1)} of ${num(total / 1e6, 1)} MB · ` : "";
    say(label, false, `${size}${num(ms)} ms`);
  },
  async ready({ ms, path }) {
    $("#boot").textContent = `Python started here in ${num(ms)} ms (${path}).`;
    say(LIVE, false, `Python took ${num(ms)} ms.`);
    await arrive();
    root.dataset.live = Math.round(performance.now());
    performance.mark("live");
    // Warm up: the engine compiles what runs often.
    for (let i = 0; i < 12 && link.live; i++) await link.latest(0, ...wanted({})).catch(() => {});
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

let faults = {}; // what is wrong with a side's settings or with the address: {text, problems, again}

/** Note what is wrong with one of them, or that nothing is, and say what is left. */
function judge(name, fault) {
  faults[name] = fault;
  form.problems(faults[side]?.problems ?? {});
  const { text, again = false } = fault ?? faults.a ?? faults.b ?? faults.address ?? {};
  if (text) say(text, true, "", again);
  else if (link.live && $("#status.bad")) say(LIVE);
}

let writing;
/** Keep the address up to date: at once with `push`, else when all is quiet. */
function remember(push = false) {
  clearTimeout(writing);
  const put = () => {
    const t = player.moved ? player.wanted ?? player.tick : null;
    write({ ...address, ...states, t: t === views.a.frame?.clock?.start ? null : t }, push);
  };
  if (push) put();
  else if (!player.playing) writing = setTimeout(put, 300);
}

const named = (state) => Object.keys(presets).find((name) => same(presets[name].state, state));
const wanted = (state, rest) => ["view", { studio: studio.name, state, rest }];
let ask = (slot, state) => link.latest(slot, ...wanted(state));
const shown = {}; // side → call of its picture
let calls = 0;
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

/** Ask for the picture of a side's state; with problems, which are said, the old one stays. */
async function refresh(name, push = false) {
  if (push) faults.address = null;
  remember(push);
  chips();
  const state = states[name];
  const asked = performance.now();
  const call = ++calls;
  const overtaken = () => call < shown[name]; // a newer picture was known and is shown
  try {
    const preset = presets[named(state)];
    if (!link.live && preset) return show(name, decode(await (await get(preset.frame)).json()));
    const reply = await ask(name, state);
    if (!reply || !states[name] || overtaken()) return;
    shown[name] = call;
    judge(name);
    show(name, decode(reply.header.frame, reply.buffers));
    requestAnimationFrame(() => (root.dataset.picture = Math.round(performance.now() - asked)));
  } catch ({ name: kind, message, problems = {} }) {
    if (kind === "Stopped" || overtaken()) return;
    const text = `${message}. ${views[name].panels.size ? "The picture stays" : "B has no picture yet"}.`;
    judge(name, { text: name === "b" ? `B: ${text}` : text, problems, again: kind === "Error" });
  }
}

/** Ask for all that the address shows, and say what it cannot have. */
async function arrive() {
  await Promise.all([refresh("a"), states.b && refresh("b")]);
  const { odd } = address;
  if (player.wanted > player.end) {
    odd.push(`t=${player.wanted}`);
    Object.assign(player, { moved: false, wanted: undefined });
    player.seek(views.a.frame.clock?.start ?? 0);
  }
  const found = odd.map((text) => text.replace(/(.{24}).+/, "$1…")).join(", ");
  const allowed = `t is 0 to ${num(player.end)} ${player.unit}, theme light or dark`;
  judge("address", found ? { text: `${found} is not possible: ${allowed}; change the address. The picture stays.` } : null);
}

const rested = $("#rest") && import("./rest.mjs");
const last = () => link.live && link.latest("rest", ...wanted(states.a, true));
let heard;
function show(name, frame) {
  if (name === "a") rested?.then(({ rest }) => rest(frame, views.rest, last));
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
  const current = named(states[side]);
  press("preset", current);
  $("#note").textContent = presets[current]?.note ?? "Your own settings, held in this page’s address.";
}

function pick(name) {
  side = name;
  press("side", side);
  form.set(states[side]);
  judge(side, faults[side]);
  chips();
}

/** Show or hide B; a new B starts as a copy of A. */
function compare(on) {
  states.b = on ? (states.b ?? { ...states.a }) : null;
  root.classList.toggle("ab", on);
  $("#compare").setAttribute("aria-pressed", on);
  if (!on) {
    faults.b = null;
    show("b", { panels: [] });
  }
  pick(on ? side : "a");
}

const drop = async ([file]) => {
  const state = file && (await (await import("./drop.mjs")).drop(file, link, views.file, player.tick, say));
  if (state) choose(trim({ ...states[side], ...state }));
};

const ACTIONS = {
  theme() {
    theme((address.theme = otherTheme()));
    remember();
  },
  compare() {
    side = states.b ? "a" : "b";
    compare(!states.b);
    states.b ? refresh("b", true) : remember(true);
  },
  sheet: () => root.classList.toggle("sheet"),
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

/** A preset; one that stands beside another opens both sides. */
function take({ state, beside }) {
  if (beside) {
    side = "a";
    states.b = presets[beside].state;
    compare(true);
  }
  choose(state);
  if (beside) refresh("b");
}

const KEYS = { " ": "play", ",": "back", ".": "forward", Backspace: "restart" };

function key(event) {
  const { target, key: name } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  if (target.matches("input:not([type=range], [type=checkbox]), select")) return;
  if (name === " " && target.closest("button, summary, a, [type=checkbox]")) return;
  if (name === "?") $("#help").showModal();
  else if (KEYS[name] && player.end) player.act(KEYS[name]);
  else return;
  event.preventDefault();
}

/** Take everything from the address. */
function restore() {
  address = read();
  Object.assign(states, { a: address.a, b: address.b });
  theme(address.theme);
  root.classList.toggle("embed", address.embed);
  root.classList.toggle("framed", parent !== window);
  faults = {};
  compare(!!states.b);
  Object.assign(player, { moved: address.t >= 0, wanted: address.t });
  player.seek(address.t <= player.end ? address.t : views.a.frame.clock?.start ?? 0);
}

show("a", decode(JSON.parse($("#frame").textContent)));
restore();
if (Object.keys(states.a).length && named(states.a)) refresh("a");
setUp();
addEventListener("keydown", key);
addEventListener("click", async (event) => {
  const { act, preset, side: name, claim, state } = event.target.closest("[data-act], [data-preset], [data-side], [data-claim], [data-state]")?.dataset ?? {};
  if (act) ACTIONS[act]();
  else if (state) choose(trim({ ...states[side], ...JSON.parse(state) }));
  else if (preset) take(presets[preset]);
  else if (name) pick(name);
  else if (claim && !event.metaKey && !event.ctrlKey) {
    event.preventDefault();
    (await import("./verify.mjs")).show(config, link, claim);
  }
});
addEventListener("popstate", () => {
  restore();
  arrive();
});
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  drop(event.dataTransfer.files);
});
addEventListener("paste", ({ target, clipboardData }) => {
  const text = clipboardData.getData("text");
  if (studio.pastes && text && !target.matches("input, select")) drop([new File([text], "pasted.json")]);
});
$("#file").addEventListener("change", ({ target }) => {
  drop(target.files);
  target.value = ""; // so that the same file can be chosen again
});

// After the first paint, when the page is idle; at the first touch or key at the latest.
const start = () => link.start();
requestAnimationFrame(() => setTimeout(() => (window.requestIdleCallback ?? setTimeout)(start, { timeout: 300 })));
for (const type of ["pointerdown", "keydown"]) addEventListener(type, start, { once: true });
