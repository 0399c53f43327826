// The worker: boots Python once, then answers calls. Buffers are transferred, not copied.

import { boot } from "./boot.mjs";

let python;

async function start(config) {
  python = boot(config, (stage) => postMessage({ ...stage, type: "stage" }));
  try {
    const { ms, path } = await python;
    postMessage({ type: "ready", ms, path });
  } catch ({ stage = "starting Python", name, message, fix = "Try again, or reload the page." }) {
    postMessage({ type: "failed", stage, name, message, fix });
  }
}

self.onmessage = async ({ data: { type, config, id, method, params, file } }) => {
  if (type === "boot") return start(config);
  try {
    const { header, buffers } = await (await python).call(method, params, file);
    const list = buffers.map((b) => b.buffer ?? b);
    postMessage({ type: "reply", id, header, buffers: list }, list);
  } catch ({ name, message }) {
    const error = { name, message: message.trim().split("\n").pop(), problems: {} };
    postMessage({ type: "reply", id, header: JSON.stringify({ error }), buffers: [] });
  }
};
