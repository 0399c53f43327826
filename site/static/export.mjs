// Take it away: picture, numbers, trace, link, code to embed.

import { $, colour, config, h } from "./dom.mjs";

const PERFETTO = "https://ui.perfetto.dev";
const { title, name, slug } = config.studio;

/** What is on a stage, with title and headline, as one canvas. */
function picture(stage, headline) {
  const scale = devicePixelRatio;
  const { left, top, width, height } = stage.getBoundingClientRect();
  const canvas = h("canvas", { width: (width + 32) * scale, height: (height + 96) * scale });
  const g = canvas.getContext("2d");
  g.scale(scale, scale);
  g.fillStyle = colour("bg");
  g.fillRect(0, 0, canvas.width, canvas.height);
  const write = (text, x, y, font, ink = "ink") => {
    Object.assign(g, { font: `${font} system-ui, sans-serif`, fillStyle: colour(ink) });
    g.fillText(text, x, y, width - x + 16);
  };
  write(`${title}, Servelab`, 16, 32, "600 20px");
  write(headline, 16, 56, "14px", "muted");
  for (const el of stage.querySelectorAll("h2, .readout, canvas, .legend li")) {
    const at = el.getBoundingClientRect();
    const [x, y] = [at.left - left + 16, at.top - top + 80];
    if (el.tagName === "CANVAS") g.drawImage(el, x, y, at.width, at.height);
    else if (el.tagName === "LI") write(el.textContent, x + 22, y + 17, "14px", "muted");
    else write(el.textContent, x, y + 17, el.tagName === "H2" ? "600 16px" : "14px");
  }
  return canvas;
}

function save(blob, download) {
  const href = URL.createObjectURL(blob);
  h("a", { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** Perfetto's handshake: PING until it answers PONG, then the trace. Only this click leaves the origin. */
function perfetto(tab, buffer, title) {
  const ping = setInterval(() => tab.postMessage("PING", PERFETTO), 100);
  addEventListener("message", function answer({ data, origin }) {
    if (data !== "PONG" || origin !== PERFETTO) return;
    clearInterval(ping);
    removeEventListener("message", answer);
    tab.postMessage({ perfetto: { buffer, title } }, PERFETTO);
  });
  setTimeout(() => clearInterval(ping), 30_000);
}

/** The dialog for one side's state. */
export function show(link, state, side, headline) {
  const say = (text) => ($("#x-say").textContent = text);
  const file = async (format) => {
    if (!link.live) say("Python is still starting; the file comes when it is ready …");
    const { header, buffers } = await link.call("export", { studio: name, state, format });
    say("");
    return { ...header, buffer: buffers[0] };
  };
  const [page, hash = ""] = location.href.split("#");
  $("#x-link").value = location.href;
  $("#x-embed").value = `<iframe src="${page}#${hash}${hash && "&amp;"}embed=1" title="${title}" width="100%" height="720" loading="lazy"></iframe>`;
  say("");
  $("#export").onclick = async ({ target }) => {
    const what = target.dataset.export;
    if (!what) return;
    try {
      if (what === "png") picture($(`#stage-${side}`), headline).toBlob((blob) => save(blob, `servelab-${slug}.png`));
      else if (what === "open") {
        const tab = open(PERFETTO);
        if (!tab) throw new Error("the browser blocked the new tab: allow it, or save the trace file and open it at ui.perfetto.dev");
        const made = await file("perfetto");
        perfetto(tab, made.buffer, made.name);
      } else if (what.startsWith("x-")) {
        $(`#${what}`).select();
        await navigator.clipboard.writeText($(`#${what}`).value).then(() => say("Copied."), () => say("Selected: copy it with Ctrl+C."));
      } else {
        const made = await file(what);
        save(new Blob([made.buffer], { type: made.mime }), made.name);
      }
    } catch (error) {
      say(error.message);
    }
  };
  $("#export").showModal();
}
