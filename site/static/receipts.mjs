// The receipts page: check every receipt's bytes and signature, and run what can be run, in this browser.

import { $, config, otherTheme, setUp, theme } from "./dom.mjs";
import { Link } from "./link.mjs";
import { again, check, put, show } from "./verify.mjs";

const say = (text) => ($("#status span").textContent = text);
const link = new Link(config, {
  stage: ({ label, ms }) => say(`${label} · ${Math.round(ms)} ms`),
  ready: ({ ms }) => say(`Python ready after ${Math.round(ms)} ms.`),
  failed: ({ name, message, fix }) => say(`${name}: ${message} ${fix}`),
  slow() {},
});

/** One receipt's three findings in its lines; true when nothing is wrong. */
async function one(row) {
  const { unmodified, signed, receipt } = await check(config, row.dataset.receipt);
  put(row, "unmodified", unmodified);
  put(row, "signed", signed);
  put(row, "again", { text: "running …" });
  const result = await again(link, receipt);
  put(row, "again", result);
  return unmodified.ok && signed.ok && result.ok !== false;
}

const ACTIONS = {
  async all(button) {
    button.disabled = true;
    link.again();
    const rows = [...document.querySelectorAll("[data-receipt]")];
    const good = [];
    for (const row of rows) if (await one(row)) good.push(row);
    say(`${good.length} of ${rows.length} receipts are unmodified, signed and, where they can be run here, reproduced.`);
    button.disabled = false;
  },
  theme: () => theme(otherTheme()),
};

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-act], button[data-claim]");
  if (button?.dataset.claim) show(config, link, button.dataset.claim);
  else if (button) ACTIONS[button.dataset.act]?.(button);
});
setUp();
