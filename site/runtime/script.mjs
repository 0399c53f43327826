// Run a Python expression in Pyodide under Node: node script.mjs EXPRESSION FOLDER… prints its text. Folders of this
// machine appear at /0, /1, … and are on sys.path.
import { loadPyodide } from "pyodide";

const [expression, ...folders] = process.argv.slice(2);
const python = await loadPyodide();
folders.forEach((folder, i) => {
  python.mountNodeFS(`/${i}`, folder);
  python.runPython(`import sys; sys.path.append("/${i}")`);
});
const [module] = expression.split(".");
python.runPython(`import gc, ${module}; gc.freeze(); gc.set_threshold(2_000_000)`);
console.log(python.runPython(expression));
process.exit(0);
