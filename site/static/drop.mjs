// A trace file that the visitor drops on the page or picks: its picture comes beside the one that is there.

import { $, config, num } from "./dom.mjs";
import { decode } from "./frame.mjs";

/** Show `file` in `view` at the clock's `tick`; `say` writes the status line. Bytes stay on this machine. Returns the
 * settings that put the file to use, if the studio has any. */
export async function drop(file, link, view, tick, say) {
  const { name, size } = file;
  say(`Reading ${name}, ${num(size / 1e6, 1)} MB …`);
  const running = setInterval(() => link.live && say(`Replaying ${name} …`), 100); // in place of what a boot says
  try {
    const { header, buffers } = await link.call("drop", { studio: config.studio.name, name }, await file.arrayBuffer());
    $("#file-result").hidden = false;
    $("#file-result h2").textContent = name;
    view.show(decode(header.frame, buffers), true);
    view.draw(tick);
    $("#file-result").scrollIntoView({ block: "nearest" });
    say(view.frame.headline);
    return Object.keys(header.state).length ? header.state : null;
  } catch ({ name: kind, message }) {
    if (kind !== "Stopped") say(message.startsWith(name) ? message : `${name}: ${message}`, true, "", false);
  } finally {
    clearInterval(running);
  }
}
