// Verify: three separate findings about a receipt (unmodified, signed by, reproduced here) and what they do not say.
//
// The envelope is DSSE over an in-toto Statement: Ed25519 over "DSSEv1 <len> <type> <len> <payload>"; the statement's
// subjects carry each receipt's sha256. Nothing is re-serialised to be checked.

import { $, get, h, num } from "./dom.mjs";

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const finding = (ok, text) => ({ ok, text });

async function sha256(data) {
  if (!globalThis.crypto?.subtle) throw new Error("this browser checks hashes only on https or localhost; open the page there");
  return hex(await crypto.subtle.digest("SHA-256", data));
}

async function fits(der, signature, message, noble) {
  try {
    const key = await crypto.subtle.importKey("spki", der, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, message);
  } catch {
    const library = await import(new URL(noble, document.baseURI)); // browsers without Ed25519
    return library.verifyAsync(signature, message, der.slice(-32));
  }
}

/** {subjects: name → sha256, signed: finding} of the site's one attestation. */
async function attested({ receipts, vendor }) {
  const envelope = await (await get(receipts.attestation)).json();
  const payload = bytes(envelope.payload);
  const head = new TextEncoder().encode(`DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `);
  const message = new Uint8Array([...head, ...payload]);
  const signers = [];
  for (const { label, url } of receipts.keys) {
    const pem = await (await get(url)).text();
    const der = bytes(pem.replace(/-----[^-]+-----|\s/g, ""));
    const id = await sha256(der);
    for (const { keyid, sig } of envelope.signatures) {
      if (keyid === id && (await fits(der, bytes(sig), message, vendor?.noble))) signers.push(label);
    }
  }
  const subjects = Object.fromEntries(JSON.parse(new TextDecoder().decode(payload)).subject.map((s) => [s.name, s.digest.sha256]));
  const signed = signers.length
    ? finding(true, `${signers.join(", ")} (Ed25519 over the in-toto statement, ${Object.keys(subjects).length} receipts)`)
    : finding(false, "no known key fits the signature of attestation.json; get the site again from its source");
  return { subjects, signed };
}

/** Check one receipt's bytes and the signature over them: {entry, receipt, unmodified, signed}. */
export async function check(config, kind) {
  const index = new URL(config.receipts.index, document.baseURI);
  const entry = (await (await get(index)).json()).find((e) => e.kind === kind);
  if (!entry) throw new Error(`this site has no receipt of kind ${kind}; see the receipts page for those it has`);
  const name = `${entry.kind}/${entry.file.split("/").pop()}`;
  const data = await (await get(new URL(entry.url, index))).arrayBuffer();
  const hash = await sha256(data);
  const { subjects, signed } = await attested(config);
  const unmodified = hash === subjects[name]
    ? finding(true, `sha256 ${hash.slice(0, 16)}… is the one that was signed for ${name}`)
    : finding(false, `${name} has sha256 ${hash.slice(0, 16)}…, signed was ${subjects[name]?.slice(0, 16) ?? "nothing"}…: this receipt was changed`);
  let receipt = null;
  try {
    receipt = JSON.parse(new TextDecoder().decode(data));
  } catch {
    unmodified.text += " and is no JSON any more";
  }
  return { entry, receipt, unmodified, signed };
}

/** Run the receipt's computation in the worker: {ok, text, rows}. */
export async function again(link, receipt, file = null) {
  if (receipt.evidence === "model") {
    return { ...finding(null, `a projection, not reproducible; it assumes ${JSON.stringify(receipt.workload)}`), rows: [] };
  }
  try {
    const { rows, note } = (await link.call("recompute", { receipt }, file)).header;
    const bad = rows.filter((row) => !row.same).map((row) => row.metric);
    const text = bad.length ? `${bad.join(", ")} came out different. ${note ?? ""}` : `${rows.length} of ${rows.length} numbers are the same. ${note ?? ""}`;
    return { ...finding(!bad.length, text), rows };
  } catch (error) {
    return { ...finding(false, `could not be run: ${error.message}`), rows: [] };
  }
}

export function put(el, { ok, text }) {
  el.dataset.ok = ok;
  $("span", el).textContent = text;
}

function table(rows) {
  const shown = (value) => (typeof value === "number" ? num(value, Number.isInteger(value) ? 0 : 6).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") : num(value));
  const line = (r) => h("tr", { class: r.same ? "" : "bad" }, h("th", { scope: "row" }, r.metric), h("td", { class: "n" }, shown(r.committed)),
    h("td", { class: "n" }, shown(r.recomputed)), h("td", {}, r.unit), h("td", {}, r.same ? "same" : "differs"));
  const heads = ["Number", "In the receipt", "Here, now", "Unit", ""].map((text) => h("th", { scope: "col" }, text));
  return h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows.map(line)));
}

/** The dialog for a claim ("kv_pages.shared_blocks") or a whole receipt ("kv_pages"). */
export async function open(config, link, claim) {
  const box = $("#verify");
  const line = (name) => $(`[data-check="${name}"]`, box);
  const [kind, metric] = claim.split(".");
  $("h2", box).textContent = `Receipt ${claim}`;
  for (const name of ["unmodified", "signed", "again"]) put(line(name), finding("", "checking …"));
  $("#v-rows").replaceChildren();
  $("#v-facts").replaceChildren();
  $("#v-drop").hidden = true;
  if (!box.open) box.showModal();
  let found;
  try {
    found = await check(config, kind);
  } catch (error) {
    put(line("unmodified"), finding(false, error.message));
    for (const name of ["signed", "again"]) put(line(name), finding("", "not checked"));
    return;
  }
  const { receipt, entry } = found;
  put(line("unmodified"), found.unmodified);
  put(line("signed"), found.signed);
  if (!receipt) return put(line("again"), finding(false, "not run: the receipt cannot be read"));
  const value = metric && receipt.metrics[metric];
  const facts = { Value: value && `${num(value.value, Number.isInteger(value.value) ? 0 : 4)} ${value.unit}${value.n ? `, n = ${num(value.n)}` : ""}`,
    Evidence: receipt.evidence, Command: receipt.command, Commit: receipt.commit, Date: receipt.date, Data: receipt.data?.name,
    Losses: receipt.losses?.join(" ") };
  const pairs = Object.entries(facts).filter(([, text]) => text);
  $("#v-facts").replaceChildren(...pairs.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]),
    h("dt", {}, "File"), h("dd", {}, h("a", { href: new URL(entry.url, new URL(config.receipts.index, document.baseURI)) }, entry.file)));
  const run = async (file) => {
    put(line("again"), finding("", "running the core here …"));
    const result = await again(link, receipt, file);
    put(line("again"), result);
    $("#v-rows").replaceChildren(result.rows.length ? table(result.rows) : "");
  };
  $("#v-drop").hidden = receipt.evidence !== "replayed";
  $("#v-drop b").textContent = receipt.data?.name ?? "";
  $("#v-drop input").onchange = async ({ target }) => target.files[0] && run(await target.files[0].arrayBuffer());
  await run();
}
