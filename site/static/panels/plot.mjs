// A Plotly figure. The library is fetched when a plot first comes near the screen; colours are the theme's tokens.

import { colour, h, json } from "../dom.mjs";

let library = null;

function plotly() {
  library ??= new Promise((resolve, reject) => {
    const failed = () => {
      library = null;
      reject(new Error("the plot library could not be fetched; check the connection and reload"));
    };
    document.head.append(h("script", { src: json("config").vendor?.plotly ?? "", onload: () => resolve(window.Plotly), onerror: failed }));
  });
  return library;
}

/** "$decode" → the theme's colour, anywhere in a trace; columns stay as they are. */
function paint(value) {
  if (typeof value === "string" && value.startsWith("$")) return colour(value.slice(1));
  if (Array.isArray(value)) return value.map(paint);
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, paint(item)]));
}

export default (el) => {
  const box = h("div", { class: "plot", role: "img" });
  const note = h("p", { class: "caption" });
  el.append(box, note);
  let data;
  let near = false;
  let timer;
  let tick = 0;

  function layout() {
    const axis = (title, name) => ({
      title: { text: title }, type: data.log.includes(name) ? "log" : "-", automargin: true, gridcolor: colour("line"),
      linecolor: colour("line"), zerolinecolor: colour("line"),
    });
    const cursor = { type: "line", xref: "x", yref: "paper", x0: tick, x1: tick, y0: 0, y1: 1, line: { color: colour("ink"), width: 1 } };
    return {
      xaxis: axis(data.x, "x"), yaxis: axis(data.y, "y"), margin: { l: 56, r: 16, t: 8, b: 48 }, shapes: data.cursor ? [cursor] : [],
      paper_bgcolor: "transparent", plot_bgcolor: "transparent", legend: { orientation: "h", y: 1.12 }, showlegend: data.traces.length > 1,
      font: { family: "system-ui, sans-serif", size: 14, color: colour("ink") },
    };
  }

  async function draw() {
    try {
      (await plotly()).react(box, paint(data.traces), layout(), { displayModeBar: false, responsive: true });
    } catch (error) {
      note.textContent = `${data.alt} (${error.message})`;
    }
  }

  const soon = () => {
    clearTimeout(timer);
    if (near && data) timer = setTimeout(draw, 120);
  };
  const watch = new IntersectionObserver(([entry]) => {
    near ||= entry.isIntersecting;
    if (near) watch.disconnect();
    soon();
  }, { rootMargin: "200px" });
  watch.observe(box);
  return {
    theme: soon,
    close: () => watch.disconnect(),
    update(panel) {
      data = panel;
      box.setAttribute("aria-label", panel.alt);
      note.replaceChildren(`${panel.alt} `, h("span", { class: "tag" }, panel.basis));
      soon();
    },
    draw(now) {
      tick = now;
      if (data.cursor) soon();
    },
  };
};
