// Paragraphs, and a story: what has happened up to the clock's tick, newest first; a line sends the clock to its tick.

import { h, num } from "../dom.mjs";

const LINES = 40;

export default (el, ctx) => {
  const body = h("div");
  const list = h("ol", { class: "story", reversed: true, tabIndex: 0, "aria-label": "What has happened, newest first" });
  el.append(body, list);
  let data;
  let shown = null;
  const sentence = (i) =>
    data.templates[data.template[i]].replace(/\{(\d)\}/g, (_, k) => num(data[`a${k}`]?.[i]));
  const line = (i) =>
    h("li", {}, h("button", { type: "button", onclick: () => ctx.seek(data.t[i]) }, h("b", {}, num(data.t[i])), " ", sentence(i)));
  return {
    update(panel) {
      data = panel;
      shown = null;
      body.replaceChildren(...panel.body.map((words) => h("p", {}, words)));
      list.hidden = !panel.t;
    },
    draw(tick) {
      if (!data.t) return;
      let upto = 0;
      for (let high = data.t.length; upto < high; ) {
        const middle = (upto + high) >> 1;
        if (data.t[middle] <= tick) upto = middle + 1;
        else high = middle;
      }
      if (upto === shown) return;
      const rows = [];
      for (let i = upto - 1; i >= Math.max(0, upto - LINES); i--) rows.push(line(i));
      list.replaceChildren(...(rows.length ? rows : [h("li", {}, "Nothing yet: press play.")]));
      list.start = upto;
      shown = upto;
    },
  };
};
