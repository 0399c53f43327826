// The worker: boots Python once, then answers calls. Buffers are transferred, not copied.

import { boot } from "./boot.mjs";

let python;

self.onmessage = async ({ data }) => {
  if (data.type === "boot") {
    python = boot(data.config, (stage) => postMessage({ type: "stage", ...stage }));
    python.then(
      ({ ms, path }) => postMessage({ type: "ready", ms, path }),
      (error) => postMessage({
        type: "failed", stage: error.stage ?? "start", name: error.name, message: error.message, fix: error.fix ?? "Try again, or reload the page.",
      }),
    );
    return;
  }
  const { id, method, params, file } = data;
  try {
    const { header, buffers } = await (await python).call(method, params, file ? new Uint8Array(file) : null);
    const list = buffers.map((b) => (b instanceof ArrayBuffer ? b : b.buffer));
    postMessage({ type: "reply", id, header, buffers: list }, list);
  } catch (error) {
    const problem = { name: error.name, message: `${error.message}`.trim().split("\n").pop(), problems: {} };
    postMessage({ type: "reply", id, header: JSON.stringify({ error: problem }), buffers: [] });
  }
};
