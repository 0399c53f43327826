// What is computed last: it comes once the settings rest; a preset has it baked in.

import { decode } from "./frame.mjs";

const REST = 400; // ms without a new picture
let timer;

/** Show the panels of `frame` that are computed last, or what `ask()` answers when no other frame has come. */
export function rest(frame, view, ask) {
  clearTimeout(timer);
  if (frame.panels.some(({ area }) => area === "rest")) return view.show(frame);
  timer = setTimeout(async () => {
    const reply = await Promise.resolve(ask()).catch(() => {});
    if (reply) view.show(decode(reply.header.frame, reply.buffers));
  }, REST);
}
