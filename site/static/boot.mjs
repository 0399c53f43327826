/* Boots Python in a module worker: from a memory snapshot, and if anything about that fails, from precompiled files.
 *
 * boot(config, onStage) -> { py, path, ms, call(method, params, file) -> { header, buffers } }
 * Large files are gzip that the page inflates itself: no host has to compress them, and progress is in bytes that arrive.
 */
import { BootError, download, watched } from "./download.mjs";
import { start } from "./start.mjs";

const STDLIB = "/lib/python314.zip";
const NO_FILE = new Set(["ModuleNotFoundError", "ImportError", "ZipImportError", "EOFError", "FileNotFoundError"]);
const FIX = "Reload the page. If it stays, the site is incomplete: build and deploy it again.";

/** config: the page's JSON, `config.base` the page's URL. onStage({stage, label, ms, bytes?, total?}): what happens now. */
export async function boot(config, onStage) {
  const began = performance.now();
  const runtime = config.runtime;
  const at = (url) => new URL(url, config.base ?? self.location.href).href;
  const dir = at(runtime.dir);
  const pulse = { quiet: 0, stage: "runtime" };
  const say = (stage, label, more) => {
    Object.assign(pulse, { quiet: 0, stage });
    onStage({ stage, label, ms: performance.now() - began, ...more });
  };
  const get = (part, stage, label, signal) =>
    download(dir + part.file, part, { stage, signal, report: (bytes, total) => say(stage, label, { bytes, total }) });

  const shared = once(() => engine(dir, runtime, get, say));
  const receipts = fetch(at(config.receipts.bundle)).then((reply) => {
    if (reply.ok) return reply.text();
    throw new BootError("receipts", "MissingFile", `the receipts answered ${reply.status}`, FIX);
  });
  receipts.catch(() => {});
  const needs = config.studio?.needs ?? [];
  const parts = { dir, runtime, shared, get, say, needs };

  let path = "snapshot";
  let python;
  try {
    if (!runtime.snapshot) throw new BootError("snapshot", "NoSnapshot", "this build has no snapshot", FIX);
    python = await watched(pulse, (signal) => restored(parts, signal));
  } catch (error) {
    say("snapshot", `No snapshot (${error.message}): loading files`);
    path = "precompiled";
    python = await watched(pulse, (signal) => assembled(parts, signal));
  }
  const { py, complete } = python;
  say("core", "Importing the core");
  const bridge = imported(py);
  bridge.load(await receipts);
  const ms = performance.now() - began;
  say("core", "Ready");
  return { py, path, ms, call: caller(py, bridge, complete) };
}

/** What both ways need: Pyodide's two modules and the compiled wasm. */
async function engine(dir, runtime, get, say) {
  say("runtime", "Loading Python");
  const modules = ["pyodide.mjs", "pyodide.asm.mjs"].map((file) =>
    import(dir + file).catch(async (error) => {
      const { status } = await fetch(dir + file).catch(() => ({ status: "nothing" }));
      throw new BootError("runtime", "MissingFile", `${file} did not load (answered ${status}): ${error.message}`, FIX);
    }));
  const wasm = get({ ...runtime.wasm, compile: true }, "runtime", "Loading Python");
  wasm.catch(() => {}); // whoever awaits it hears of it
  const [{ loadPyodide }, asm] = await Promise.all(modules);
  return { loadPyodide, asm: asm.default, wasm };
}

async function restored({ dir, runtime, shared, get, say, needs }, signal) {
  const part = runtime.snapshot;
  const more = once(() => library(runtime, get, needs, signal));
  if (needs.length) more().catch(() => {});
  const [{ loadPyodide, asm, wasm }, bytes] =
    await Promise.all([shared(), get(part, "snapshot", "Loading the core's memory", signal)]);
  await wasm;
  say("python", "Waking Python");
  const snapshot = { bytes, base: part.base, digest: part.digest };
  const py = await start({ loadPyodide, asm, wasm, indexURL: dir, snapshot, lock: runtime.lock });
  const complete = once(async () => install(py, await more(), say));
  if (needs.length) await complete();
  return { py, complete };
}

async function assembled({ dir, runtime, shared, get, say, needs }, signal) {
  const more = library(runtime, get, needs, signal);
  more.catch(() => {});
  const { loadPyodide, asm, wasm } = await shared();
  const files = await more;
  await wasm;
  say("python", "Starting Python");
  const py = await start({ loadPyodide, asm, wasm, indexURL: dir, stdlib: files.stdlib, lock: runtime.lock });
  install(py, files, say);
  return { py, complete: async () => {} };
}

/** The files that a snapshot does not hold: standard library, core, and the packages a studio needs. */
async function library(runtime, get, needs, signal) {
  const packages = needs.map((name) => {
    if (runtime.packages[name]) return runtime.packages[name];
    throw new BootError("packages", "UnknownPackage", `this build ships no ${name}`, FIX);
  });
  const [stdlib, ...wheels] = await Promise.all([
    get(runtime.stdlib, "library", "Loading the standard library", signal),
    ...[runtime.core, ...packages].map((part) => get(part, "packages", `Loading ${part.file}`, signal)),
  ]);
  return { stdlib, wheels };
}

function install(py, { stdlib, wheels }, say) {
  say("packages", "Unpacking packages");
  py.FS.writeFile(STDLIB, stdlib);
  for (const wheel of wheels) py.unpackArchive(wheel, "wheel");
  py.pyimport("importlib").invalidate_caches();
}

function imported(py) {
  try {
    return py.pyimport("servelab.view.bridge");
  } catch (error) {
    throw new BootError("core", "BrokenCore", String(error.message).trim().split("\n").at(-1), FIX);
  }
}

/** A method call across the seam; columns come back as ArrayBuffers of their own, ready to be transferred. */
function caller(py, bridge, complete) {
  const { bytes } = py.pyimport("builtins");
  const once = (method, params, file) => {
    const input = file ? bytes(py.toPy(new Uint8Array(file))) : undefined;
    const reply = bridge.call(method, params, input);
    const [header, columns] = reply.toJs();
    reply.destroy();
    input?.destroy();
    return { header, buffers: columns.map((column) => column.buffer) };
  };
  return async (method, params, file = null) => {
    const reply = once(method, params, file);
    if (!reply.header.startsWith('{"error"') || !NO_FILE.has(JSON.parse(reply.header).error.name)) return reply;
    await complete(); // a module that the snapshot did not think of: fetch the library, then ask again
    return once(method, params, file);
  };
}

function once(make) {
  let made;
  return () => (made ??= make());
}
