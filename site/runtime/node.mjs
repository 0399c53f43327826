/* Pyodide in Node for the build: the same start() as in the browser, from files, with every source of chance fixed. */
import nodeCrypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { start } from "../static/start.mjs";

const INSTANT = 1_600_000_000_000; // any fixed time will do: file times and seeds must not differ between two builds

// The uncaught error of a one-line 1.2 MB module prints that line: say only what went wrong.
process.on("uncaughtException", (error) => {
  console.error(error?.message ?? error);
  process.exit(1);
});

/** Make clocks, random bytes and names of this process the same in every run. Call before Python starts. */
export function fixChance() {
  process.argv[1] = "/python"; // Python keeps the program's path and the time zone in its memory
  process.env.TZ = "UTC";
  Date.now = () => INSTANT;
  performance.now = () => 0;
  Math.random = () => 0.5;
  let word = 1;
  const fill = (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let i = 0; i < bytes.length; i++) bytes[i] = (word = (Math.imul(word, 1_103_515_245) + 12_345) >>> 0) >>> 24;
    return array;
  };
  globalThis.crypto.getRandomValues = fill;
  nodeCrypto.randomFillSync = fill;
}

/** Start Python from the runtime folder `dir`; `stdlib` names a zip; the rest goes to start(). */
export async function python(dir, { stdlib, ...more } = {}) {
  const at = (name) => path.resolve(dir, name);
  const { loadPyodide } = await import(pathToFileURL(at("pyodide.mjs")));
  const asm = (await import(pathToFileURL(at("pyodide.asm.mjs")))).default;
  const wasm = WebAssembly.compile(fs.readFileSync(at("pyodide.asm.wasm")));
  const lock = { ...JSON.parse(fs.readFileSync(at("pyodide-lock.json"), "utf8")), packages: {} };
  const bytes = stdlib ? new Uint8Array(fs.readFileSync(stdlib)) : null;
  return start({ loadPyodide, asm, wasm, lock, indexURL: path.resolve(dir) + path.sep, stdlib: bytes, ...more });
}
