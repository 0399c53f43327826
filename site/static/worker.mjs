// The worker: boots Python once, then answers calls. Buffers are transferred, not copied.

import { boot } from "./boot.mjs";

let python;

self.onmessage = async ({ data: { type, config, id, method, params, file } }) => {
  try {
    if (type === "boot") {
      python = boot(config, (stage) => postMessage({ ...stage, type: "stage" }));
      const { ms, path } = await python;
      return postMessage({ type: "ready", ms, path });
    }
    const { header, buffers } = await (await python).call(method, params, file);
    postMessage({ type: "reply", id, header, buffers }, buffers);
  } catch ({ stage = id ? `in ${method}` : "starting Python", name, message, fix = "Press Retry, or reload the page." }) {
    // A problem with a call comes back as its reply; what is thrown ends this Python, and the page this worker.
    postMessage({ type: "failed", stage, name, message: `${message}`.trim().split("\n").pop(), fix });
  }
};
