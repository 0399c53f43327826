// The page "Open the code": one PyScript editor cell (py-editor) with servelab in it, and plain buttons around it.
//
// PyScript runs the script in a worker of its own. Stop ends that worker and starts another; the script stays. Whatever
// fails gets a name and a way on, and the script remains on the page as text.

import { $, config, get, h, theme } from "../dom.mjs";
import { args, filled } from "./script.mjs";

const SILENCE = 45_000; // ms without a word from the worker before the page says so
const DARKER = { "rgb(238, 68, 0)": "#b23000", "rgb(0, 136, 85)": "#00704f", "rgb(255, 0, 0)": "#b80000" }; // CodeMirror's pale ones
const place = $("#cell");
const [run, stop, copy, pick] = ["#run", "#stop", "#copy", "#example"].map((id) => $(id));
const edited = new Map(); // example → the script as the visitor left it

let round = null; // what belongs to one worker: {setup, cell, channel, ready, timer}
let rounds = 0; // PyScript keeps environments by name for as long as the page lives: each round has its own
let shown = ""; // the example in the editor
let text = ""; // the script that the editor was last given
let since = 0;

const seconds = () => `${((performance.now() - since) / 1000).toFixed(2)} s`;
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
const say = (text) => ($("#status").textContent = text);
const script = () => round?.cell.code ?? text;

/** Put an editor with `code` on the page and start a worker for it. */
function open() {
  text = script();
  close();
  const channel = new BroadcastChannel(`servelab-code-${crypto.randomUUID()}`);
  const boot = JSON.stringify({ ...config.boot, base: document.baseURI });
  const interpreter = `${new URL(config.interpreter, document.baseURI)}#${new URLSearchParams({ boot, channel: channel.name })}`;
  const env = `servelab-${++rounds}`;
  const words = { "data-run": "Run", "data-stop": "Stop" };
  const setup = h("script", { type: "py-editor", setup: "", env, ...words, config: JSON.stringify({ interpreter }) });
  const cell = h("script", { type: "py-editor", env, output: "output" }, text);
  since = performance.now();
  round = { setup, cell, channel, ready: false };
  watch(round);
  place.replaceChildren(setup, cell, h("pre", { id: "output", role: "log", tabIndex: 0, "aria-label": "Output" }));
}

function close() {
  if (!round) return;
  clearTimeout(round.timer);
  round.channel.close();
  round.setup.xworker?.terminate();
}

/** Follow one round: stages, failures by name, silence. */
function watch(mine) {
  const failed = (name, message, fix = "") => mine === round && !mine.ready && fail(name, message, fix);
  const patient = () => {
    clearTimeout(mine.timer);
    mine.timer = setTimeout(() => failed("Silence", `nothing was heard of Python for ${SILENCE / 1000} s`), SILENCE);
  };
  patient();
  say("Loading the editor…");
  mine.channel.onmessage = ({ data }) => {
    if (data.failed) return failed(data.failed.name, data.failed.message, data.failed.fix);
    if (mine.ready) return null;
    patient();
    return say(`${data.label}${data.total ? `: ${megabytes(data.bytes)} of ${megabytes(data.total)} MB` : "…"}`);
  };
  mine.setup.addEventListener("py-editor", () => {
    clearTimeout(mine.timer);
    mine.ready = true;
    say(mine.waiting ? "Running…" : `Python and servelab are ready (${seconds()}).`);
    if (mine.waiting) since = performance.now();
  });
  mine.cell.addEventListener("py-editor", () => {
    const worker = mine.setup.xworker;
    if (!worker) return failed("WorkerRefused", "the browser did not start the worker that Python needs");
    worker.onerror = ({ error }) => failed(error.name, error.message);
    worker.addEventListener("error", (event) => failed("WorkerRefused", event.message || "the browser refused the worker"));
    worker.ready.catch((error) => failed(error.name, error.message));
    return dress(mine);
  });
  mine.cell.addEventListener("py-editor:done", () => {
    mine.waiting = false;
    stop.disabled = true;
    say(`Finished in ${seconds()}.`);
  });
}

/** What py-editor leaves to the page: a label, type and dark colours, focus where it was, and a say in each run. */
function dress(mine) {
  const root = $(".py-editor-input > div", place).shadowRoot;
  const lines = $(".cm-content", root);
  lines.setAttribute("aria-label", "Python script; Escape, then Tab leaves it");
  lines.blur();
  root.append(h("link", { rel: "stylesheet", href: config.editor }));
  for (const rule of root.adoptedStyleSheets.flatMap((sheet) => [...sheet.cssRules])) {
    if (DARKER[rule.style?.color]) rule.style.color = DARKER[rule.style.color];
  }
  mine.cell.handleEvent = () => {
    since = performance.now();
    mine.waiting = true;
    stop.disabled = false;
    say(mine.ready ? "Running…" : "Runs as soon as Python is there…");
  };
  run.disabled = copy.disabled = pick.disabled = false;
}

/** Name what went wrong. The script stays in the editor, or as text when there is none. */
function fail(name, message, fix = "") {
  close();
  if (!$(".py-editor-box", place)) place.replaceChildren(h("pre", { tabIndex: 0 }, script()));
  run.disabled = stop.disabled = true;
  say("Python is not running.");
  const [heading, text] = $("#problem").children;
  heading.textContent = name;
  text.textContent = `${message}${/[.!?]$/.test(message) ? "" : "."} ${fix}`;
  $("#problem").hidden = false;
}

/** What the address says after its #: a studio's state, as on the studio's own page. */
const linked = () => new URLSearchParams(location.hash.slice(1));

/** The studio that this page was opened from: `?studio=`, else the first. */
function origin() {
  const name = new URLSearchParams(location.search).get("studio")?.replaceAll("-", "_");
  return config.studios.find((studio) => studio.name === name) ?? config.studios[0];
}

/** An example's script: as the visitor left it, else from its file, with the link's state in the studio's one. */
async function example(name) {
  if (edited.has(name)) return edited.get(name);
  const source = await (await get(config.scripts[name])).text();
  if (name !== "studio") return source;
  const studio = origin();
  const state = args(studio.controls, Object.fromEntries(linked()));
  $("#refused").hidden = !state.refused.length;
  $("#refused").textContent = `Left out, because the studio does not take it: ${state.refused.join(", ")}.`;
  return filled(source, studio.name, state.args);
}

async function choose(name) {
  if (shown) edited.set(shown, script());
  text = await example(name);
  shown = pick.value = name;
  if (round) round.cell.code = text;
  else place.replaceChildren(h("pre", { tabIndex: 0 }, text));
}

/** The studio around this page was moved on: its script is written anew. */
function renew() {
  edited.delete("studio");
  if (shown !== "studio") return;
  shown = "";
  choose("studio").catch((error) => fail(error.name, error.message));
}

/** Ctrl-Enter in the editor presses py-editor's own, hidden button: while a script runs that would ask a question. */
function single(event) {
  if (event.target.closest(".running")) event.stopPropagation();
}

async function main() {
  theme(linked().get("theme"));
  const framed = window.parent !== window;
  document.body.classList.toggle("framed", framed);
  $("#full").hidden = !framed;
  for (const link of document.links) if (link.target) link.href = location.href;
  place.addEventListener("click", single, true);
  pick.addEventListener("change", () => choose(pick.value).catch((error) => fail(error.name, error.message)));
  run.addEventListener("click", () => $(".py-editor-run-button", place).click());
  stop.addEventListener("click", () => open());
  copy.addEventListener("click", async () => {
    const copied = navigator.clipboard?.writeText(script()) ?? Promise.reject();
    await copied.then(() => say("Copied."), () => say("Copying is off here: select the text."));
  });
  $("#again").addEventListener("click", () => (round ? open() : location.reload()));
  addEventListener("hashchange", renew);
  addEventListener("unhandledrejection", ({ reason }) => {
    const message = String(reason?.message ?? reason);
    if (!round?.ready && $("#problem").hidden) fail(/import|module/i.test(message) ? "EditorMissing" : "WorkerRefused", message);
  });
  await choose(new URLSearchParams(location.search).has("studio") ? "studio" : "compare");
  await import(new URL(config.pyscript, document.baseURI)).catch((error) => {
    throw Object.assign(new Error(`the editor did not load (${error.message})`), { name: "EditorMissing" });
  });
  open();
}

main().catch((error) => fail(error.name, error.message, "Check the connection, then try again."));
