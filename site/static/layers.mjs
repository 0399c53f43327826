// Two canvases, one over the other: a picture and what moves on it; under them a line to read.

import { h } from "./dom.mjs";

/** Give a panel base, over, pane and readout; it hears what happens on them, and is drawn when their room changes. */
export function layers(panel, label, ...more) {
  const base = h("canvas", { role: "img" });
  const over = h("canvas", { ariaHidden: "true" });
  const pane = h("div", { className: "cells", tabIndex: 0, role: "group", "aria-label": label }, h("div", { className: "pad" }, base, over));
  for (const type of ["pointermove", "pointerdown", "pointerleave", ...more]) over.addEventListener(type, panel);
  for (const type of ["keydown", "blur"]) pane.addEventListener(type, panel);
  const readout = h("p", { className: "readout" });
  pane.onfocus = () => (readout.ariaLive = "polite"); // read aloud to who walks
  pane.onblur = () => (readout.ariaLive = "off");
  const watch = new ResizeObserver(([{ contentRect: { width, height } }]) => {
    panel.room = [width, height];
    panel.draw(panel.tick, true);
  });
  watch.observe(pane);
  Object.assign(panel, { base, over, pane, readout, watch });
}

/** Both as large as this, in the screen's own pixels. */
export function size({ base, over, px }, width, height) {
  for (const canvas of [base, over]) {
    if (canvas.width === width && canvas.height === height) continue;
    Object.assign(canvas, { width, height });
    Object.assign(canvas.style, { width: `${width / px}px`, height: `${height / px}px` });
  }
}
