// Verify: separate findings about a receipt (unmodified, signed by, reproduced here) and what they do not say.
// The attestation is a DSSE envelope over an in-toto Statement: Ed25519 over "DSSEv1 <len> <type> <len> <payload>"; its
// subjects carry each receipt's sha256. Nothing is re-serialised to be checked.

import { $, get, h, num } from "./dom.mjs";

const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const text = (data) => new TextDecoder().decode(data);
const here = (url, base = document.baseURI) => new URL(url, base);

async function sha256(data) {
  if (!globalThis.crypto?.subtle) throw new Error("this browser checks hashes only on https or localhost; open the page there");
  const digest = await crypto.subtle.digest("SHA-256", data);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function fits(key, signature, message, noble) {
  try {
    const imported = await crypto.subtle.importKey("spki", key, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, message);
  } catch {
    const library = await import(here(noble)); // a browser without Ed25519
    return library.verifyAsync(signature, message, key.slice(-32));
  }
}

/** {subjects: name → sha256, signed: finding} of the site's one attestation. */
async function attested({ receipts, vendor }) {
  const envelope = await (await get(here(receipts.attestation))).json();
  const payload = bytes(envelope.payload);
  const head = `DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `;
  const message = new Uint8Array([...new TextEncoder().encode(head), ...payload]);
  const signers = [];
  for (const { label, url } of receipts.keys) {
    const key = bytes((await (await get(here(url))).text()).replace(/-----[^-]+-----|\s/g, ""));
    const id = await sha256(key);
    for (const { keyid, sig } of envelope.signatures) {
      if (keyid === id && (await fits(key, bytes(sig), message, vendor?.noble))) signers.push(label);
    }
  }
  const subjects = Object.fromEntries(JSON.parse(text(payload)).subject.map((s) => [s.name, s.digest.sha256]));
  const signed = signers.length
    ? { ok: true, text: `${signers.join(", ")}: Ed25519 over the statement of ${Object.keys(subjects).length} receipts` }
    : { ok: false, text: "attestation.json: no known key fits its signature; get the site again from its source" };
  return { subjects, signed };
}

/** Check one receipt's bytes and the signature over them: {url, receipt, unmodified, signed}. */
export async function check(config, kind) {
  const index = here(config.receipts.index);
  const entry = (await (await get(index)).json()).find((e) => e.kind === kind);
  if (!entry) throw new Error(`there is no receipt of kind ${kind} here; the receipts page lists those there are`);
  const url = here(entry.url, index);
  const data = await (await get(url)).arrayBuffer();
  const hash = await sha256(data);
  const { subjects, signed } = await attested(config);
  const ok = hash === subjects[entry.file];
  const was = subjects[entry.file]?.slice(0, 16) ?? "nothing";
  const unmodified = {
    ok,
    text: ok ? `sha256 ${hash.slice(0, 16)}… is what was signed for ${entry.file}`
      : `${entry.file} was changed: its sha256 is ${hash.slice(0, 16)}…, signed was ${was}…; get it again from its source`,
  };
  let receipt = null;
  try {
    receipt = JSON.parse(text(data));
  } catch {
    unmodified.text += "; it is no JSON any more";
  }
  return { url, file: entry.file, receipt, unmodified, signed };
}

/** Run the receipt's computation in the worker: {ok, text, rows}; ok null: nothing to run. */
export async function again(link, receipt, file = null) {
  if (!receipt) return { ok: false, text: "not run: the receipt cannot be read", rows: [] };
  if (receipt.evidence === "model") {
    return { ok: null, text: `a projection cannot be reproduced. It assumes ${JSON.stringify(receipt.workload)}`, rows: [] };
  }
  try {
    const { rows, note = "" } = (await link.call("recompute", { receipt }, file)).header;
    const bad = rows.filter((row) => !row.same).map((row) => row.metric);
    const said = bad.length ? `different here: ${bad.join(", ")}` : `${rows.length} of ${rows.length} numbers are the same`;
    return { ok: !bad.length, text: `${said}. ${note}`, rows };
  } catch (error) {
    return { ok: false, text: `could not be run: ${error.message}`, rows: [] };
  }
}

/** Show a finding in its line; without `ok` it is under way. */
export function put(root, name, { ok = "", text }) {
  const line = $(`[data-check="${name}"]`, root);
  line.dataset.ok = ok;
  $("span", line).textContent = text;
}

const exact = (value) => (typeof value === "number" ? value.toLocaleString("en-US", { maximumSignificantDigits: 12 }) : num(value));

function table(rows) {
  const head = ["Number", "In the receipt", "Here, now", "Unit", ""].map((name, i) => h("th", { scope: "col", className: i % 3 ? "n" : "" }, name));
  const line = ({ metric, committed, recomputed, unit, same }) => h("tr", { className: same ? "" : "bad" }, h("th", { scope: "row" }, metric),
    h("td", { className: "n" }, exact(committed)), h("td", { className: "n" }, exact(recomputed)), h("td", {}, unit), h("td", {}, same ? "same" : "differs"));
  return h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(line)));
}

function facts({ receipt, url, file }, metric) {
  const { value, unit, n, ci95 } = receipt?.metrics[metric] ?? {};
  const more = [n && `n = ${num(n)}`, ci95 && `95 % interval ${ci95.map(exact).join(" to ")}`].filter(Boolean).map((part) => `, ${part}`);
  const { evidence, command, commit, date, data, losses, environment } = receipt ?? {};
  const names = [data ?? []].flat().map((d) => d.name).join(", ");
  const machine = Object.entries(environment ?? {}).map(([key, item]) => `${key} ${typeof item === "object" ? JSON.stringify(item) : item}`).join(" · ");
  const lines = { Value: unit !== undefined && `${exact(value)} ${unit}${more.join("")}`, Evidence: evidence, Command: command, Commit: commit, Date: date,
    Machine: machine, Data: names, Losses: losses?.join(" "), File: h("a", { href: url }, file) };
  return Object.entries(lines).filter(([, item]) => item).flatMap(([name, item]) => [h("dt", {}, name), h("dd", {}, item)]);
}

/** The dialog for a claim ("kv_pages.shared_blocks") or a whole receipt ("kv_pages"). */
export async function show(config, link, claim) {
  const box = $("#verify");
  const [kind, metric] = claim.split(".");
  $("h2", box).textContent = `Receipt: ${claim}`;
  for (const name of ["unmodified", "signed", "again"]) put(box, name, { text: "checking …" });
  $("#v-rows").replaceChildren();
  $("#v-facts").replaceChildren();
  $("#v-drop").hidden = true;
  if (!box.open) box.showModal();
  let found;
  try {
    found = await check(config, kind);
  } catch (error) {
    put(box, "unmodified", { ok: false, text: error.message });
    for (const name of ["signed", "again"]) put(box, name, { text: "not checked" });
    return;
  }
  const { receipt } = found;
  put(box, "unmodified", found.unmodified);
  put(box, "signed", found.signed);
  $("#v-facts").replaceChildren(...facts(found, metric));
  const run = async (file) => {
    put(box, "again", { text: "running the core in this tab …" });
    const result = await again(link, receipt, file);
    put(box, "again", result);
    $("#v-rows").replaceChildren(result.rows.length ? table(result.rows) : "");
  };
  $("#v-drop").hidden = receipt?.evidence !== "replayed";
  $("#v-drop b").textContent = [receipt?.data ?? []].flat().map((d) => d.name).join(" or ");
  $("#v-drop input").onchange = async ({ target }) => target.files[0] && run(await target.files[0].arrayBuffer());
  await run();
}
