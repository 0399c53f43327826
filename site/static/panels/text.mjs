// Paragraphs, and a story: what has happened up to the clock's tick, newest first; a line sends the clock there.

import { h, num, upto } from "../dom.mjs";

const LINES = 20;

export default (el, ctx) => {
  const body = h("div");
  const list = h("ol", { className: "story", tabIndex: 0, ariaLabel: "What has happened, newest first" });
  el.append(body, list);
  let data;
  let shown;
  const line = (i) => {
    const words = data.templates[data.template[i]].replace(/\{(n?)(\d)\}/g, (_, named, k) => (named ? data.names[data[`a${k}`][i]] : num(data[`a${k}`][i])));
    return h("li", {}, h("button", { type: "button", onclick: () => ctx.seek(data.t[i]) }, h("b", {}, num(data.t[i])), h("span", {}, words)));
  };
  return {
    update(panel) {
      data = panel;
      shown = null;
      body.replaceChildren(...panel.body.map((words) => h("p", {}, words)));
      list.hidden = !panel.t;
    },
    draw(tick) {
      const count = data.t && upto(data.t, tick);
      if (count === shown || !data.t) return;
      shown = count;
      const lines = Array.from({ length: Math.min(count, LINES) }, (_, i) => line(count - 1 - i));
      list.replaceChildren(...(count ? lines : [h("li", {}, "Nothing yet: press play.")]));
    },
  };
};
