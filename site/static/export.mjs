// Take it away: picture, numbers, trace, link, embed code.

import { $, colour, h } from "./dom.mjs";

const PERFETTO = "https://ui.perfetto.dev";

/** What is on the stage, with title and address, as one canvas. */
function picture(root, title, words) {
  const scale = devicePixelRatio || 1;
  const box = root.getBoundingClientRect();
  const head = 72;
  const canvas = h("canvas", { width: Math.round((box.width + 32) * scale), height: Math.round((box.height + head + 24) * scale) });
  const g = canvas.getContext("2d");
  g.scale(scale, scale);
  g.fillStyle = colour("bg");
  g.fillRect(0, 0, canvas.width, canvas.height);
  const write = (text, x, y, font, tone = "ink") => {
    g.font = `${font} system-ui, sans-serif`;
    g.fillStyle = colour(tone);
    g.fillText(text, x, y, box.width - x + 16);
  };
  write(title, 16, 32, "600 20px");
  write(words, 16, 56, "14px", "muted");
  for (const el of root.querySelectorAll("h2, .readout, .cells canvas")) {
    const at = el.getBoundingClientRect();
    const [x, y] = [at.left - box.left + 16, at.top - box.top + head];
    if (el.tagName === "CANVAS") g.drawImage(el, x, y, at.width, at.height);
    else write(el.textContent, x, y + 16, el.tagName === "H2" ? "600 16px" : "14px");
  }
  return canvas;
}

function send(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Perfetto's handshake: PING until it answers PONG, then the trace. The visitor's click is what leaves this origin. */
function perfetto(buffer, title) {
  const tab = open(PERFETTO);
  if (!tab) throw new Error("the browser blocked the new tab; allow it, or save the trace file and open it at ui.perfetto.dev");
  const ping = setInterval(() => tab.postMessage("PING", PERFETTO), 100);
  const answer = ({ data, origin }) => {
    if (data !== "PONG" || origin !== PERFETTO) return;
    clearInterval(ping);
    removeEventListener("message", answer);
    tab.postMessage({ perfetto: { buffer, title } }, PERFETTO);
  };
  addEventListener("message", answer);
  setTimeout(() => clearInterval(ping), 30_000);
}

export function show(config, link, state, frame, side) {
  const box = $("#export");
  const { title, name, slug } = config.studio;
  const say = (text) => ($("#x-say").textContent = text);
  const file = async (format) => {
    if (!link.live) say("Python is still starting; the file is made when it is ready …");
    const { header, buffers } = await link.call("export", { studio: name, state, format });
    return { ...header, buffer: buffers[0] };
  };
  const page = location.href;
  $("#x-link").value = page;
  const shown = `${page.split("#")[0]}#${[location.hash.slice(1), "embed=1"].filter(Boolean).join("&")}`.replace(/"/g, "%22");
  $("#x-embed").value = `<iframe src="${shown}" title="${title}" width="100%" height="720" loading="lazy"></iframe>`;
  say("");
  box.onclick = async ({ target }) => {
    const what = target.dataset?.export;
    if (!what) return;
    try {
      if (what === "png") picture($(`#stage-${side}`), title, frame.headline).toBlob((blob) => send(blob, `servelab-${slug}.png`));
      else if (what === "open") {
        const { buffer, name: trace } = await file("perfetto");
        perfetto(buffer, trace);
      } else if (what.startsWith("x-")) {
        $(`#${what}`).select();
        await navigator.clipboard.writeText($(`#${what}`).value).then(() => say("Copied."), () => say("Selected: press Ctrl+C."));
      } else {
        const made = await file(what);
        send(new Blob([made.buffer], { type: made.mime }), made.name);
      }
    } catch (error) {
      say(error.message);
    }
  };
  box.showModal();
}
