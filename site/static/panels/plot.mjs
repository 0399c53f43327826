// A Plotly figure; colours are the theme's tokens. This module and the library come when a plot nears the screen.

import { colour, config, h } from "../dom.mjs";
import { basis } from "./metric.mjs";

let library;

function plotly() {
  library ??= new Promise((resolve, reject) => {
    const onerror = () => reject(new Error("the plot library could not be fetched; check the connection and reload"));
    document.head.append(h("script", { src: config.vendor?.plotly, onload: () => resolve(window.Plotly), onerror }));
  });
  return library;
}

/** "$decode" → the theme's colour, anywhere in a trace. */
function paint(value) {
  if (typeof value === "string") return value[0] === "$" ? colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map(paint);
  if (!value || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, paint(item)]));
}

// Ticks of a log axis: powers of two where all values are, else 1, 2, 5, 10 …
const POWERS = Array.from({ length: 20 }, (_, i) => 2 ** i);
const TENS = [0.01, 0.1, 1, 10, 100, 1e3, 1e4, 1e5].flatMap((ten) => [ten, 2 * ten, 5 * ten]);

function layout({ x, y, log, cursor, traces }, tick) {
  const [color, line] = [colour("ink"), colour("line")];
  const axis = (text, name) => {
    const tickvals = traces.every((trace) => trace[name].every((value) => POWERS.includes(value))) ? POWERS : TENS;
    const scale = log.includes(name) ? { type: "log", tickvals, tickformat: ",~g" } : {};
    return { title: { text }, automargin: true, gridcolor: line, zerolinecolor: line, ...scale };
  };
  return {
    xaxis: axis(x, "x"), yaxis: axis(y, "y"), margin: { l: 56, r: 16, t: 8, b: 48 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    showlegend: traces.length > 1, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, font: { family: "system-ui, sans-serif", size: 14, color },
    shapes: cursor ? [{ type: "line", yref: "paper", x0: tick, x1: tick, y0: 0, y1: 1, line: { color, width: 1 } }] : [],
  };
}

export default (el) => {
  const box = h("div", { className: "plot", role: "img" });
  const note = h("p", { className: "caption" });
  el.append(box, note);
  let [data, tick, timer] = [null, 0, 0];
  const draw = async () => {
    try {
      (await plotly()).react(box, paint(data.traces), layout(data, tick), { displayModeBar: false, responsive: true });
    } catch (error) {
      note.textContent = `${data.alt} (${error.message})`;
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(draw, 120);
  };
  return {
    theme: soon,
    update(panel) {
      data = panel;
      box.setAttribute("aria-label", panel.alt);
      note.replaceChildren(panel.alt, " ", h("span", { className: "tag" }, basis(panel)));
      soon();
    },
    draw(now) {
      if (data.cursor && now !== tick) soon();
      tick = now;
    },
  };
};
