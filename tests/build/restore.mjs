/* node restore.mjs JOB.json: Python in Node by the page's own code, then calls across the seam.
 *
 * job: {runtime: folder, snapshot: {file, base, digest} | null, stdlib, core, rooms: [files], packages: [files], bundle, calls: [[method, params]]}
 * prints [{header, buffers: [base64]}]
 */
import fs from "node:fs";
import zlib from "node:zlib";
import { python } from "../../site/runtime/node.mjs";
import { caller, install } from "../../site/static/boot.mjs";

const job = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const bytes = (file) => new Uint8Array(fs.readFileSync(file));
const files = () => ({ stdlib: bytes(job.stdlib), wheels: [job.core, ...job.rooms, ...job.packages].map(bytes) });
const quiet = () => {};
let completed = 0;

let py;
if (job.snapshot) {
  const { file, base, digest } = job.snapshot;
  py = await python(job.runtime, { snapshot: { bytes: new Uint8Array(zlib.gunzipSync(fs.readFileSync(file))), base, digest } });
  if (job.packages.length) install(py, files(), quiet);
  else install(py, { wheels: job.rooms.map(bytes) }, quiet);
} else {
  py = await python(job.runtime, { stdlib: job.stdlib });
  install(py, files(), quiet);
}
const bridge = py.pyimport("servelab.view.bridge");
if (job.bundle) bridge.load(fs.readFileSync(job.bundle, "utf8"));
const call = caller(py, bridge, async () => {
  completed++;
  install(py, files(), quiet);
});
const replies = [];
for (const [method, params] of job.calls) {
  const { header, buffers } = await call(method, JSON.stringify(params));
  replies.push({ header, buffers: buffers.map((buffer) => Buffer.from(buffer).toString("base64")) });
}
const evaluated = job.evaluate ? py.runPython(fs.readFileSync(job.evaluate, "utf8")) : null;
console.log(JSON.stringify({ replies, evaluated, completed }));
