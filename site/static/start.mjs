/* Hands Pyodide its parts, here and in the build's Node tools. Unlike in a plain loadPyodide, the wasm is compiled by the
 * caller (Pyodide's own download never settles when the file is bad), the library comes as bytes, and a snapshot is stored
 * as the difference from the constant tables that the wasm module brings.
 */

export const STDLIB = "/lib/python314.zip";
const TABLE_BASE = 14_336; // engines start the function table a few slots apart: a fixed base fits them all
const HEADER = 1; // word of a snapshot that holds the length of its header

/** Pyodide's API. `wasm`: a WebAssembly.Module or a promise of it; `lock`: as in a lock file; `stdlib`: zip bytes, or
 * `snapshot`: {bytes, base, digest}; onMemory(module) sees the memory before Python runs. */
export async function start({ loadPyodide, asm, wasm, indexURL, lock, stdlib, snapshot, onMemory, options = {} }) {
  globalThis.WasmOffsetConverter ??= null; // where this name exists, pyodide.mjs leaves the wasm to the caller
  let fail;
  const failed = new Promise((_, reject) => (fail = reject));
  const createPyodideModule = (settings) => {
    const [install, ...rest] = settings.preRun;
    const prepare = async (module) => {
      module.addRunDependency("servelab"); // keeps main() from running
      await install(module);
      module.wasmTable.grow(TABLE_BASE - module.wasmTable.length);
      onMemory?.(module);
      if (snapshot) await unfold(module, snapshot);
      if (stdlib) module.FS.writeFile(STDLIB, stdlib);
      module.removeRunDependency("servelab");
    };
    settings.preRun = [(module) => prepare(module).catch(fail), ...rest];
    settings.instantiateWasm = (imports, receive) => {
      instantiate(wasm, imports, receive).catch(fail);
      return {};
    };
    return asm(settings);
  };
  const python = loadPyodide({
    indexURL, createPyodideModule, packageBaseUrl: indexURL, stdLibURL: indexURL + "empty.zip",
    lockFileContents: lock, env: { HOME: "/home/pyodide", LANG: "C.UTF-8", PYTHONHASHSEED: "0" },
    ...(snapshot ? { _loadSnapshot: snapshot.bytes } : {}), ...options,
  });
  return Promise.race([python, failed]);
}

async function instantiate(wasm, imports, receive) {
  const compiled = await wasm;
  const marker = Symbol("error marker");
  imports.env.Jsv_GetError_import = () => marker;
  imports.env.JsvError_Check = (value) => value === marker;
  receive(await WebAssembly.instantiate(compiled, imports), compiled);
}

/** Where a snapshot's heap begins in its bytes. */
export const heapStart = (bytes) => new Uint32Array(bytes.buffer, bytes.byteOffset, 2)[HEADER];

/** Address of the one word that depends on the engine: CPython's function trampoline. */
export const engineWord = (module) =>
  module.__PyRuntime + module.HEAP32[module.__PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET >>> 2];

/** The constant tables that the wasm module brings: the first `length` bytes of a memory in which Python has not run. */
export function constants(module, length) {
  const tables = module.HEAPU8.slice(0, length);
  tables.fill(0, engineWord(module), engineWord(module) + 4);
  return tables;
}

/** XOR `tables` into the beginning of `heap`; doing it twice undoes it. */
export function fold(heap, tables) {
  const a = new Uint32Array(heap.buffer, heap.byteOffset, tables.length >>> 2);
  const b = new Uint32Array(tables.buffer, tables.byteOffset, tables.length >>> 2);
  for (let i = 0; i < b.length; i++) a[i] ^= b[i];
}

export async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Give a stored snapshot its constant tables and this engine's word back, and make room for it. */
async function unfold(module, { bytes, base, digest }) {
  const tables = constants(module, base);
  if ((await sha256(tables)) !== digest) throw new Error("it was made for another build of the interpreter");
  const heap = bytes.subarray(heapStart(bytes));
  fold(heap, tables);
  const word = engineWord(module);
  heap.set(module.HEAPU8.subarray(word, word + 4), word);
  if (module.HEAP8.length < heap.length) module._emscripten_resize_heap(heap.length);
}
