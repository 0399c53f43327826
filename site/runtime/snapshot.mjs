/* node snapshot.mjs DIR STDLIB.zip SITE PACKAGES OUT: the heap of a Python that has imported everything under SITE.
 *
 * Free memory is overwritten with zeros first: it compresses to nothing, and it is where leftovers of one run would differ
 * from another's. Trailing zeros are cut off. Files are not part of a snapshot.
 */
import fs from "node:fs";
import path from "node:path";
import { constants, engineWord, fold, heapStart, sha256 } from "../static/start.mjs";
import { fixChance, python } from "./node.mjs";

const [dir, stdlib, site, packages, out] = process.argv.slice(2);
const SITE = "/lib/python3.14/site-packages";
const PAGE = 65_536;

function* files(folder, under = "") {
  for (const name of fs.readdirSync(folder).sort()) {
    const full = path.join(folder, name);
    if (fs.statSync(full).isDirectory()) yield* files(full, `${under}/${name}`);
    else if (!under.includes(".dist-info")) yield [`${under}/${name}`, new Uint8Array(fs.readFileSync(full))];
  }
}

/** Zero all free memory: take blocks of falling size until the heap would have to grow, clear them, give them back. */
function scrub(module) {
  const top = () => module.HEAPU32[module._emscripten_get_sbrk_ptr() >>> 2];
  const ceiling = top();
  const taken = [];
  for (let size = 1 << 20; size >= 16; size >>= 1) {
    for (;;) {
      const block = module._malloc(size);
      module.HEAPU8.fill(0, block, block + size);
      taken.push(block);
      if (top() !== ceiling) break;
    }
  }
  for (const block of taken) module._free(block);
  return ceiling;
}

/** Zero what is below the stack pointer: frames of calls that have returned. */
function wipeStack(module) {
  module.HEAPU8.fill(0, module._emscripten_stack_get_end(), module._emscripten_stack_get_current());
}

function lastByte(bytes) {
  let end = bytes.length;
  while (bytes[end - 1] === 0) end--;
  return end;
}

fixChance();
let base;
const onMemory = (module) => (base = constants(module, Math.ceil(lastByte(module.HEAPU8) / 4) * 4));
const py = await python(dir, { stdlib, onMemory, options: { _makeSnapshot: true } });
for (const [name, bytes] of files(site)) {
  py.FS.mkdirTree(path.posix.dirname(SITE + name));
  py.FS.writeFile(SITE + name, bytes);
}
const scope = py.globals.get("dict")();
py.runPython(fs.readFileSync(new URL("./warm.py", import.meta.url), "utf8"), { globals: scope });
const modules = scope.get("warm")(SITE, packages);
scope.get("settle")();
scope.destroy();
scrub(py._module);
wipeStack(py._module);
const whole = py.makeMemorySnapshot();
const bytes = whole.slice(0, Math.min(whole.length, Math.ceil(lastByte(whole) / PAGE) * PAGE));
const heap = bytes.subarray(heapStart(bytes));
heap.fill(0, engineWord(py._module), engineWord(py._module) + 4);
fold(heap, base);
fs.writeFileSync(out, bytes);
fs.writeFileSync(out + ".json", JSON.stringify({ raw: bytes.length, base: base.length, digest: await sha256(base), modules: modules.split("\n") }));
