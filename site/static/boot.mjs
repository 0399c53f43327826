/* Boots Python in a module worker: from a memory snapshot, and if anything about that fails, from precompiled files.
 * Large files are gzip that we inflate: no host has to compress them, and progress is in bytes that arrive.
 */
import { BootError, REDEPLOY, download, watched } from "./download.mjs";
import { STDLIB, start } from "./start.mjs";

const NO_FILE = new Set(["ModuleNotFoundError", "ImportError", "ZipImportError", "EOFError", "FileNotFoundError"]);

/** { py, path, ms, call(method, params, file) → { header, buffers } } from the page's config, `config.base` its address.
 *
 * onStage({ stage, label, ms, bytes?, total? }) hears what happens now; failures are BootErrors.
 */
export async function boot(config, onStage) {
  const began = performance.now();
  const at = (url) => new URL(url, config.base ?? self.location.href).href;
  const { runtime } = config;
  const dir = at(runtime.dir);
  const pulse = {};
  const say = (stage, label, more) => {
    Object.assign(pulse, { quiet: 0, stage });
    onStage({ stage, label, ms: performance.now() - began, ...more });
  };
  const get = (part, stage, label, signal) =>
    download(dir + part.file, part, { stage, signal, report: (bytes) => say(stage, label, { bytes, total: part.bytes }) });
  const page = { dir, runtime, get, say, needs: config.studio?.needs ?? [], engine: once(() => engine(dir, runtime, get)) };

  say("runtime", "Loading Python");
  const receipts = text(at(config.receipts.bundle));
  let path = "precompiled";
  let python;
  if (runtime.snapshot) {
    try {
      python = await watched(pulse, (signal) => restored(page, signal));
      path = "snapshot";
    } catch (error) {
      say("snapshot", `No snapshot (${error.message}): loading files`);
    }
  }
  python ??= await watched(pulse, (signal) => assembled(page, signal));
  const { py, complete } = python;
  say("core", "Importing the core");
  const bridge = imported(py);
  bridge.load(await receipts);
  return { py, path, ms: performance.now() - began, call: caller(py, bridge, complete) };
}

/** What both ways need: Pyodide's two modules and the compiled wasm. */
async function engine(dir, runtime, get) {
  const wasm = get({ ...runtime.wasm, compile: true }, "runtime", "Loading Python");
  wasm.catch(() => {}); // whoever awaits it hears of it
  const module = (file) => import(dir + file).catch((error) => {
    throw new BootError("runtime", "MissingFile", `${file} did not load: ${error.message}`, REDEPLOY);
  });
  const [{ loadPyodide }, asm] = await Promise.all([module("pyodide.mjs"), module("pyodide.asm.mjs")]);
  return { loadPyodide, asm: asm.default, wasm };
}

async function restored(page, signal) {
  const { dir, runtime, get, say, needs } = page;
  const more = once(() => library(page, signal));
  if (needs.length) more().catch(() => {});
  const [{ wasm, ...parts }, bytes] =
    await Promise.all([page.engine(), get(runtime.snapshot, "snapshot", "Loading the core's memory", signal)]);
  await wasm;
  say("python", "Waking Python");
  const py = await start({ ...parts, wasm, indexURL: dir, snapshot: { ...runtime.snapshot, bytes }, lock: runtime.lock });
  const complete = once(async () => install(py, await more(), say));
  if (needs.length) await complete();
  return { py, complete };
}

async function assembled(page, signal) {
  const { dir, runtime, say } = page;
  const [{ wasm, ...parts }, files] = await Promise.all([page.engine(), library(page, signal)]);
  await wasm;
  say("python", "Starting Python");
  const py = await start({ ...parts, wasm, indexURL: dir, stdlib: files.stdlib, lock: runtime.lock });
  install(py, files, say);
  return { py, complete() {} };
}

/** The files that a snapshot does not hold: standard library, core, and the packages a studio needs. */
async function library({ runtime, needs, get }, signal) {
  const packages = needs.map((name) => {
    if (runtime.packages[name]) return runtime.packages[name];
    throw new BootError("packages", "UnknownPackage", `this build ships no ${name}`, REDEPLOY);
  });
  const [stdlib, ...wheels] = await Promise.all([runtime.stdlib, runtime.core, ...packages].map((part) =>
    get(part, "packages", `Loading ${part.file}`, signal)));
  return { stdlib, wheels };
}

export function install(py, { stdlib, wheels }, say) {
  say("packages", "Unpacking packages");
  py.FS.writeFile(STDLIB, stdlib);
  for (const wheel of wheels) py.unpackArchive(wheel, "wheel");
  py.pyimport("importlib").invalidate_caches();
}

function imported(py) {
  try {
    return py.pyimport("servelab.view.bridge");
  } catch (error) {
    throw new BootError("core", "BrokenCore", String(error.message).trim().split("\n").at(-1), REDEPLOY);
  }
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
    if (!reply.header.startsWith('{"error"') || !NO_FILE.has(JSON.parse(reply.header).error.name)) return reply;
    await complete(); // a module that the snapshot did not think of: fetch the library, then ask again
    return ask(method, params, file);
  };
}

function text(url) {
  const reply = fetch(url).then((answer) => {
    if (answer.ok) return answer.text();
    throw new BootError("receipts", "MissingFile", `the receipts answered ${answer.status}`, REDEPLOY);
  });
  reply.catch(() => {});
  return reply;
}

function once(make) {
  let made;
  return () => (made ??= make());
}
