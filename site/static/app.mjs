// A studio page: the baked frame at once, then Python in a worker; controls, presets, A/B, clock and URL around it.

import { Controls } from "./controls.mjs";
import { $, dialogs, get, isDark, json, num, offline, theme } from "./dom.mjs";
import { View, decode } from "./frame.mjs";
import { Link } from "./link.mjs";
import { Player } from "./player.mjs";
import { hash, read, same, trim, write } from "./state.mjs";

const config = json("config");
const { controls: specs, presets } = config;
const status = $("#status");
let address = read(specs);
let side = "a"; // whose controls are shown
const states = { a: address.a, b: address.b };
const baked = decode(json("frame"));
let asked = 0; // when the newest picture was asked for

const verify = async (claim) => (await import("./verify.mjs")).open(config, link, claim);
const areas = (name) => Object.fromEntries(["tiles", "stage"].map((area) => [area, $(`#${area}-${name}`)]));
const seek = (tick) => player.seek(tick, true);
const views = { a: new View({ ...areas("a"), side: $("#side"), below: $("#below") }, { seek, verify }), b: new View(areas("b"), { seek, verify }) };
const dropped = new View({ tiles: $("#drop-tiles"), stage: $("#drop-stage"), side: $("#drop-below"), below: $("#drop-below") }, { seek, verify });

const player = new Player($("#transport"), (tick) => {
  for (const view of [views.a, views.b, dropped]) if (view.frame) view.draw(tick);
  remember();
});
const form = new Controls($("#controls"), specs, (key, text, done) => {
  states[side] = trim(specs, { ...states[side], [key]: text });
  refresh(side, done);
});

const link = new Link(config, {
  stage({ label, bytes, total, ms }) {
    const size = bytes ? ` ${num(bytes / 1e6, 1)}${total ? ` of ${num(total / 1e6, 1)}` : ""} MB` : "";
    say(`${label}${size} · ${num(ms)} ms`);
  },
  async ready({ ms, path }) {
    $("#boot").textContent = `Python started here in ${num(ms)} ms (${path}).`;
    await Promise.all([refresh("a", false), states.b && refresh("b", false)]);
    document.documentElement.dataset.live = Math.round(performance.now());
    performance.mark("live");
    say(`Live: the core runs in this tab. Python ready after ${num(ms)} ms.`);
  },
  failed({ stage, name, message, fix }) {
    say(`${name} while “${stage}”: ${message} ${fix} The picture below stays.`, true);
  },
  slow: (on) => ($("#stop").hidden = !on),
});

/** The status line; with `bad` it is an error and offers to try again. */
function say(text, bad = false) {
  $("span", status).textContent = text;
  status.classList.toggle("bad", bad);
  $("#retry").hidden = !bad;
}

let writing;
/** Keep the address up to date: at once with `push`, else when things have been quiet for a moment. */
function remember(push = false) {
  clearTimeout(writing);
  const t = player.moved && player.tick !== views.a.frame?.clock?.start ? player.tick : null;
  const put = () => write(hash(specs, { ...address, a: states.a, b: states.b, t }), push);
  if (push) put();
  else if (!player.playing) writing = setTimeout(put, 300);
}

/** Ask for the picture of one side's state; problems are said beside the controls and the old picture stays. */
async function refresh(name, push) {
  remember(push);
  chips();
  const state = states[name];
  const preset = Object.values(presets).find((p) => same(specs, p.state, state));
  asked = performance.now();
  try {
    if (!link.live && preset) return show(name, decode(await (await get(preset.frame)).json()));
    const reply = await link.latest(name, "view", { studio: config.studio.name, state });
    if (!reply) return;
    if (name === side) form.problems({});
    show(name, decode(reply.header.frame, reply.buffers));
  } catch (error) {
    if (error.name === "Stopped") return;
    if (error.problems && name === side) form.problems(error.problems);
    const known = Object.keys(error.problems ?? {}).length;
    say(known ? `${error.message}. The picture still shows the last good state.` : `${error.name}: ${error.message}`, !known);
  }
}

let heard;
function show(name, frame) {
  const before = views[name].frame;
  views[name].show(frame);
  player.clocks(["a", "b"].map((n) => views[n].frame?.clock).filter(Boolean));
  if (!player.moved && (!before || before.clock?.start !== frame.clock?.start)) player.seek(frame.clock?.start ?? 0);
  requestAnimationFrame(() => (document.documentElement.dataset.picture = Math.round(performance.now() - asked)));
  clearTimeout(heard);
  heard = setTimeout(() => ($("#headline").textContent = frame.headline), 600);
}

function chips() {
  const current = Object.keys(presets).find((name) => same(specs, presets[name].state, states[side]));
  for (const chip of document.querySelectorAll("[data-preset]")) chip.setAttribute("aria-pressed", chip.dataset.preset === current);
  $("#note").textContent = current ? presets[current].note : "Your own settings. The address of this page holds them.";
}

/** Show or hide B; a new B starts as a copy of A. */
function compare(on) {
  states.b = on ? (states.b ?? { ...states.a }) : null;
  $("#compare").setAttribute("aria-pressed", on);
  document.documentElement.classList.toggle("ab", on);
  if (!on) {
    pick("a");
    views.b.show({ panels: [] });
    views.b.frame = null;
  }
}

function pick(name) {
  side = name;
  for (const button of document.querySelectorAll("[data-side]")) button.setAttribute("aria-pressed", button.dataset.side === side);
  form.set(states[side]);
  form.problems({});
  chips();
}

async function drop(file) {
  if (!file) return;
  say(`Reading ${file.name}, ${num(file.size / 1e6, 1)} MB …`);
  try {
    const reply = await link.call("drop", { studio: config.studio.name, name: file.name }, await file.arrayBuffer());
    $("#dropped").hidden = false;
    $("#dropped h2").textContent = file.name;
    dropped.show(decode(reply.header.frame, reply.buffers));
    dropped.draw(player.tick);
    $("#dropped").scrollIntoView({ block: "nearest" });
    say(dropped.frame.headline);
  } catch (error) {
    say(`${file.name}: ${error.message}`, true);
  }
}

const ACTIONS = {
  theme() {
    address.theme = isDark() ? "light" : "dark";
    theme(address.theme);
    remember();
  },
  compare() {
    compare(!states.b);
    if (states.b) pick("b");
    if (states.b) refresh("b", true);
    else remember(true);
  },
  sheet: () => document.documentElement.classList.toggle("sheet"),
  retry: () => (link.live ? refresh(side, false) : link.retry()),
  stop() {
    link.end("stopped");
    say("Stopped. Starting Python again …");
    link.start();
  },
  file: () => $("#file").click(),
  export: async () => (await import("./export.mjs")).show(config, link, states[side], views[side].frame, side),
  code: () => ($("#code iframe").src ||= config.code),
  reset() {
    states[side] = {};
    form.set({});
    refresh(side, true);
  },
};

const KEYS = { " ": "play", ",": "back", ".": "forward", Backspace: "restart" };

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  const typing = event.target.closest("input:not([type=range],[type=checkbox]), select, textarea");
  if (typing || (event.key === " " && event.target.closest("button, summary, a, input"))) return;
  if (event.key === "?") $("#help").showModal();
  else if (KEYS[event.key]) player.act(KEYS[event.key]);
  else return;
  event.preventDefault();
}

function restore() {
  address = read(specs);
  Object.assign(states, { a: address.a, b: address.b });
  theme(address.theme);
  document.documentElement.classList.toggle("embed", address.embed);
  compare(!!states.b);
  pick(states.b ? side : "a");
  player.moved = address.t != null;
}

restore();
show("a", baked);
if (address.t != null) player.seek(address.t);
dialogs();
document.addEventListener("keydown", keys);
document.addEventListener("click", (event) => {
  const el = event.target.closest("[data-act], [data-preset], [data-side], [data-claim]");
  if (!el) return;
  const { act, preset, side: name, claim } = el.dataset;
  if (act) ACTIONS[act]?.();
  else if (preset) {
    states[side] = { ...presets[preset].state };
    form.set(states[side]);
    refresh(side, true);
  } else if (name) pick(name);
  else if (claim && !event.metaKey && !event.ctrlKey) {
    event.preventDefault();
    verify(claim);
  }
});
addEventListener("popstate", () => {
  restore();
  if (address.t != null) player.seek(address.t);
  refresh("a", false);
  if (states.b) refresh("b", false);
});
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  drop(event.dataTransfer.files[0]);
});
$("#file").addEventListener("change", (event) => drop(event.target.files[0]));

// Python starts after the first paint, when the page is idle, and at the first touch or key at the latest.
const start = () => link.start();
requestAnimationFrame(() => setTimeout(() => (window.requestIdleCallback ?? setTimeout)(start, { timeout: 1500 })));
for (const type of ["pointerdown", "keydown"]) addEventListener(type, start, { once: true });
offline(config.sw);
