/* Boots Python in a module worker: from a memory snapshot, and if anything about that fails, from precompiled files.
 * Large files are gzip that we inflate: no host has to compress them, and progress is in bytes that arrive.
 */
import { BootError, REDEPLOY, download, watched } from "./download.mjs";
import { STDLIB, start } from "./start.mjs";

const PACKAGES = "/lib/python3.14/site-packages"; // where a snapshot's packages believe they are
const NO_FILE = /^{"error": {"name": "(ModuleNotFound|Import|ZipImport|EOF|FileNotFound)Error"/;

/** { py, path, ms, call(method, params, file) → { header, buffers } } from the page's config, `config.base` its address.
 * onStage({ stage, label, ms, bytes?, total? }) hears what happens now.
 */
export async function boot({ runtime, receipts, studio, base = self.location.href }, onStage) {
  const began = performance.now();
  const at = (url) => new URL(url, base).href;
  const dir = at(runtime.dir);
  const pulse = {};
  const say = (stage, label, more) => {
    Object.assign(pulse, { quiet: 0, stage });
    onStage({ stage, label, ms: performance.now() - began, ...more });
  };
  const get = (part, stage, label, signal) =>
    download(dir + part.file, part, stage, signal, (bytes) => say(stage, label, { bytes, total: part.bytes }));
  const page = { dir, runtime, get, say, needs: studio?.needs ?? [], engine: once(() => engine(dir, runtime, get)) };
  const started = (snapshot) => watched(pulse, (signal) => python(page, signal, snapshot));

  say("runtime", "Loading Python");
  const asked = fetch(at(receipts.bundle));
  asked.catch(() => {}); // whoever awaits it hears of it
  const { py, complete, path } = await started(runtime.snapshot).catch((error) => {
    if (!runtime.snapshot) throw error;
    say("snapshot", `No snapshot (${error.message}): loading files`);
    return started();
  });
  say("core", "Importing the core");
  const bridge = py.pyimport("servelab.view.bridge");
  const bundle = await asked;
  if (!bundle.ok) throw new BootError("receipts", "MissingFile", `the receipts answered ${bundle.status}`, REDEPLOY);
  bridge.load(await bundle.text());
  return { py, path, ms: performance.now() - began, call: caller(py, bridge, complete) };
}

/** What both ways need: Pyodide's two modules and the compiled wasm. */
async function engine(dir, runtime, get) {
  const wasm = get({ ...runtime.wasm, compile: true }, "runtime", "Loading Python");
  wasm.catch(() => {});
  const module = (file) => import(dir + file).catch((error) => {
    throw new BootError("runtime", "MissingFile", `${file} did not load: ${error?.message ?? "it is damaged"}`, REDEPLOY);
  });
  const [{ loadPyodide }, asm] = await Promise.all([module("pyodide.mjs"), module("pyodide.asm.mjs")]);
  return { loadPyodide, asm: asm.default, wasm };
}

/** Start Python from a snapshot, or from files: { py, path, complete() adds the files that a snapshot lacks }. */
async function python(page, signal, snapshot) {
  const { dir, runtime, get, say, needs } = page;
  const files = once(() => library(page, signal));
  const complete = once(async () => install(py, await files(), say));
  const whole = !snapshot || needs.some((name) => !runtime.rooms[name]);
  const more = whole ? files : needs.length ? once(() => rooms(page, signal, needs)) : null;
  more?.().catch(() => {});
  const [{ wasm, ...parts }, bytes] =
    await Promise.all([page.engine(), snapshot && get(snapshot, "snapshot", "Loading the core's memory", signal)]);
  await wasm;
  say("python", "Starting Python");
  const from = snapshot ? { snapshot: { ...snapshot, bytes } } : { stdlib: (await files()).stdlib };
  const py = await start({ ...parts, ...from, wasm, indexURL: dir, lock: runtime.lock });
  if (whole) await complete();
  else if (more) install(py, { wheels: await more() }, say);
  return { py, complete, path: snapshot ? "snapshot" : "precompiled" };
}

const fetched = ({ get }, signal, parts) =>
  Promise.all(parts.map((part) => get(part, "packages", `Loading ${part.file}`, signal)));
const rooms = (page, signal, names) => fetched(page, signal, names.map((name) => page.runtime.rooms[name]));

/** The files that a snapshot does not hold: standard library, core, all rooms, and the packages a studio needs. */
async function library(page, signal) {
  const { runtime, needs } = page;
  const packages = needs.filter((name) => !runtime.rooms[name]).map((name) => {
    if (runtime.packages[name]) return runtime.packages[name];
    throw new BootError("packages", "UnknownPackage", `this build ships no ${name}`, REDEPLOY);
  });
  const parts = [runtime.stdlib, runtime.core, ...Object.values(runtime.rooms), ...packages];
  const [stdlib, ...wheels] = await fetched(page, signal, parts);
  return { stdlib, wheels };
}

export function install(py, { stdlib, wheels }, say) {
  say("packages", "Unpacking packages");
  if (stdlib) py.FS.writeFile(STDLIB, stdlib);
  for (const wheel of wheels) py.unpackArchive(wheel, "wheel", { extractDir: PACKAGES });
  py.pyimport("importlib").invalidate_caches();
}

/** Calls across the seam; columns come back as ArrayBuffers of their own, ready to be transferred. */
export function caller(py, bridge, complete) {
  const { bytes } = py.pyimport("builtins");
  const ask = (method, params, file) => {
    const input = file ? bytes(py.toPy(new Uint8Array(file))) : undefined;
    const reply = bridge.call(method, params, input);
    const [header, columns] = reply.toJs();
    reply.destroy();
    input?.destroy();
    return { header, buffers: columns.map((column) => column.buffer) };
  };
  return async (method, params, file = null) => {
    const reply = ask(method, params, file);
    if (!NO_FILE.test(reply.header)) return reply;
    await complete(); // a module that the snapshot did not think of: fetch the library, then ask again
    return ask(method, params, file);
  };
}

function once(make) {
  let made;
  return () => (made ??= make());
}
