// A trace file that the visitor drops on the page or picks: its picture comes beside the one that is there.

import { $, config, num } from "./dom.mjs";
import { decode } from "./frame.mjs";

/** Show `file` in `view` at the clock's `tick`; `say(text, bad)` writes the status line. Bytes stay on this machine. */
export async function drop(file, link, view, tick, say) {
  say(`Reading ${file.name}, ${num(file.size / 1e6, 1)} MB …`);
  try {
    const { header, buffers } = await link.call("drop", { studio: config.studio.name, name: file.name }, await file.arrayBuffer());
    $("#file-result").hidden = false;
    $("#file-result h2").textContent = file.name;
    view.show(decode(header.frame, buffers));
    view.draw(tick);
    $("#file-result").scrollIntoView({ block: "nearest" });
    say(view.frame.headline);
  } catch (error) {
    say(`${file.name}: ${error.message}`, true);
  }
}
