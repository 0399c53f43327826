// The interpreter that PyScript is pointed at: Pyodide's two exports, booted from the site's own precompiled runtime.
//
// PyScript imports this file inside its worker. What to boot comes after the # of its address (`boot`: JSON as boot.mjs
// reads it); what happens is told on a channel (`channel`). A visitor's script may import any module, so no snapshot is
// used: it holds the core's own imports only. Output is gathered into few messages, and stderr joins stdout: PyScript
// writes stdout as text, but stderr as HTML, where `File "<exec>"` would vanish.

import { boot } from "../boot.mjs";

const address = new URLSearchParams(new URL(import.meta.url).hash.slice(1));
const config = JSON.parse(address.get("boot"));
const channel = new BroadcastChannel(address.get("channel"));
const SINGLE = 200; // lines sent one by one; after that in groups
const EVERY = 50; // ms between two groups
const LINES = 5000; // lines shown of one run

export const version = config.runtime.version;

export async function loadPyodide({ stdout }) {
  const { py } = await boot({ ...config, runtime: { ...config.runtime, snapshot: null } }, (stage) => channel.postMessage(stage))
    .catch(told);
  const out = gathered(stdout);
  for (const set of ["setStdout", "setStderr"]) py[set]({ write: writer(out.add), isatty: true });
  const { stdout: buffered } = py.pyimport("sys");
  const run = py.runPythonAsync.bind(py);
  py.runPythonAsync = async (...args) => {
    try {
      return await run(...args);
    } catch (error) {
      buffered.flush();
      out.end();
      out.add(own(error.message));
    } finally {
      buffered.flush();
      out.end();
    }
  };
  return py;
}

/** An error keeps its name and its fix on the channel only; the page ends this worker when it hears of it. */
function told(error) {
  channel.postMessage({ failed: { name: error.name, message: error.message, fix: error.fix ?? "" } });
  return new Promise(() => {});
}

/** Bytes to text, also where a character is cut in two. */
function writer(add) {
  const decoder = new TextDecoder();
  return (bytes) => {
    add(decoder.decode(bytes, { stream: true }));
    return bytes.length;
  };
}

/** Text in, whole lines out; send() ends each message with a line break of its own. */
function gathered(send) {
  let rest = "";
  let lines = [];
  let count = 0;
  let sent = 0;
  const flush = () => {
    if (lines.length) send(lines.join("\n"));
    lines = [];
    sent = performance.now();
  };
  const line = (text) => {
    if (++count <= LINES) lines.push(text);
    else if (count === LINES + 1) lines.push(`… ${LINES.toLocaleString("en")} lines are shown; print less to see the rest`);
    if (count <= SINGLE || performance.now() - sent > EVERY) flush();
  };
  const add = (text) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop();
    parts.forEach(line);
  };
  const end = () => {
    if (rest) line(rest);
    flush();
    rest = "";
    count = 0;
  };
  return { add, end };
}

/** A traceback without the frames of Pyodide's own runner, which come before the script's. */
function own(message) {
  const [head, ...frames] = message.trimEnd().split(/\n(?= {2}File )/);
  const first = frames.findIndex((frame) => frame.startsWith('  File "<exec>"'));
  return `${first < 0 ? message.trimEnd() : [head, ...frames.slice(first)].join("\n")}\n`;
}
