/* node precompile.mjs PYODIDE_DIR JOBS.json: runs precompile.py inside Pyodide; paths in the jobs are absolute. */
import fs from "node:fs";
import path from "node:path";
import { fixChance, python } from "./node.mjs";

const [dir, jobsFile] = process.argv.slice(2);
fixChance();
const py = await python(dir, { stdlib: path.join(dir, "python_stdlib.zip") });
py.FS.mkdirTree("/host");
py.FS.mount(py.FS.filesystems.NODEFS, { root: "/" }, "/host");
const jobs = JSON.parse(fs.readFileSync(jobsFile, "utf8")).map((job) => ({ ...job, in: "/host" + job.in, out: "/host" + job.out }));
const scope = py.globals.get("dict")();
py.runPython(fs.readFileSync(new URL("./precompile.py", import.meta.url), "utf8"), { globals: scope });
console.log(scope.get("main")(JSON.stringify(jobs)));
