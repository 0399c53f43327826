// The receipts page: check every receipt's bytes and signature, and run what can be run, in this browser.

import { $, dialogs, json, offline, theme, isDark } from "./dom.mjs";
import { Link } from "./link.mjs";
import { again, check, open, put } from "./verify.mjs";

const config = json("config");
const say = (text) => ($("#status span").textContent = text);
const link = new Link(config, {
  stage: ({ label, ms }) => say(`${label} · ${Math.round(ms)} ms`),
  ready: ({ ms }) => say(`Python ready after ${Math.round(ms)} ms.`),
  failed: ({ name, message, fix }) => say(`${name}: ${message} ${fix}`),
  slow() {},
});

async function all(button) {
  button.disabled = true;
  let good = 0;
  const rows = [...document.querySelectorAll("[data-receipt]")];
  for (const row of rows) {
    const line = (name) => $(`[data-check="${name}"]`, row);
    try {
      const found = await check(config, row.dataset.receipt);
      put(line("unmodified"), found.unmodified);
      put(line("signed"), found.signed);
      const result = found.receipt ? await again(link, found.receipt) : { ok: false, text: "the receipt cannot be read" };
      put(line("again"), result);
      good += found.unmodified.ok && found.signed.ok && result.ok !== false;
    } catch (error) {
      put(line("unmodified"), { ok: false, text: error.message });
    }
  }
  say(`${good} of ${rows.length} receipts: unmodified, signed and, where it can be done here, reproduced.`);
  button.disabled = false;
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-act], [data-claim]");
  if (button?.dataset.act === "all") all(button);
  else if (button?.dataset.act === "theme") theme(isDark() ? "light" : "dark");
  else if (button?.dataset.act === "retry") link.retry();
  else if (button?.dataset.claim) open(config, link, button.dataset.claim);
});
dialogs();
offline(config.sw);
