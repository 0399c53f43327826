// Verify: separate findings about a receipt: unmodified, signed by whom, reproduced here.
// The attestation is a DSSE envelope over an in-toto Statement: Ed25519 over "DSSEv1 <len> <type> <len> <payload>"; its
// subjects carry each receipt's sha256. Nothing is re-serialised to be checked.

import { $, get, h, num } from "./dom.mjs";
import { sha256 } from "./start.mjs";

const SOURCE = "get it again from its source";
const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const text = (data) => new TextDecoder().decode(data);

/** A finding from an error: a sentence of ours, or that `file` is damaged. */
const wrong = (file) => ({ name, message }) =>
  ({ ok: false, text: name === "Error" ? message : `${file} is damaged and cannot be read; ${SOURCE}` });

async function digest(data) {
  if (!globalThis.crypto?.subtle) throw new Error("this browser checks hashes only on https or localhost; open the page there");
  return sha256(data);
}

async function fits(key, signature, message, noble) {
  try {
    const imported = await crypto.subtle.importKey("spki", key, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, message);
  } catch {
    const library = await import(new URL(noble, document.baseURI)); // a browser without Ed25519
    return library.verifyAsync(signature, message, key.slice(-32)).catch(() => false);
  }
}

/** What the site's one attestation says, {ok, text, subjects: name → sha256}. A bad key leaves the others. */
async function attested({ receipts, vendor }) {
  const envelope = await (await get(receipts.attestation)).json();
  const payload = bytes(envelope.payload);
  const head = `DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `;
  const message = new Uint8Array([...new TextEncoder().encode(head), ...payload]);
  const subjects = Object.fromEntries(JSON.parse(text(payload)).subject.map((s) => [s.name, s.digest.sha256]));
  const [signers, troubles] = [[], []];
  for (const { label, url } of receipts.keys) {
    try {
      const key = bytes((await (await get(url)).text()).replace(/-----[^-]+-----|\s/g, ""));
      const id = await digest(key);
      for (const { keyid, sig } of envelope.signatures) {
        if (keyid === id && (await fits(key, bytes(sig), message, vendor?.noble))) signers.push(label);
      }
    } catch (error) {
      troubles.push(wrong(`key ${label} or its signature`)(error).text);
    }
  }
  const said = signers.length ? `${signers.join(", ")}: Ed25519 over the statement of ${Object.keys(subjects).length} receipts`
    : `attestation.json: no known key fits its signature; ${SOURCE}`;
  return { ok: !!signers.length, text: [said, ...troubles].join(". "), subjects };
}

function compared(file, hash, subjects) {
  const is = `${hash.slice(0, 16)}…`;
  if (!subjects) return { ok: null, text: `its sha256 is ${is}; what was signed cannot be read` };
  if (hash === subjects[file]) return { ok: true, text: `sha256 ${is} is what was signed for ${file}` };
  const was = subjects[file]?.slice(0, 16) ?? "nothing";
  return { ok: false, text: `${file} was changed: its sha256 is ${is}, signed was ${was}…; ${SOURCE}` };
}

/** Judge one receipt's bytes and the signature over them, each by itself: {url, file, receipt, unmodified, signed}. */
export async function check(config, kind) {
  const found = { receipt: null, signed: await attested(config).catch(wrong("attestation.json")) };
  try {
    const index = await get(config.receipts.index);
    const entry = (await index.json()).find((e) => e.kind === kind);
    if (!entry) throw new Error(`there is no receipt of kind ${kind} here; the receipts page lists those there are`);
    Object.assign(found, { file: entry.file, url: new URL(entry.url, index.url) });
    const data = await (await get(found.url)).arrayBuffer();
    found.unmodified = compared(entry.file, await digest(data), found.signed.subjects);
    found.receipt = JSON.parse(text(data));
  } catch (error) {
    found.unmodified ??= wrong("index.json")(error);
  }
  return found;
}

/** Run the receipt's computation in the worker: {ok, text, rows}; ok null: nothing to run. */
export async function again(link, receipt, file = null) {
  const none = (ok, text) => ({ ok, text, rows: [] });
  if (!receipt) return none(false, "not run: the receipt cannot be read");
  if (receipt.evidence === "model") return none(null, `a projection cannot be reproduced. It assumes: ${receipt.assumptions.join(" ")}`);
  try {
    const { rows, note = "" } = (await link.call("recompute", { receipt }, file)).header;
    const bad = rows.filter((row) => !row.same).map((row) => row.metric);
    const count = rows.filter(({ metric }) => metric in receipt.metrics).length;
    const rest = count < rows.length ? " and the statistic" : "";
    const said = bad.length ? `different here: ${bad.join(", ")}` : `${count} numbers${rest} are the same`;
    return { ok: !bad.length, text: `${said}. ${note}`, rows };
  } catch (error) {
    return none(false, `could not be run: ${error.message}`);
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
  const body = rows.map(({ metric, committed, recomputed, unit, same }) => h("tr", { className: same ? "" : "bad" }, h("th", { scope: "row" }, metric),
    [exact(committed), exact(recomputed), unit, same ? "same" : "differs"].map((text, i) => h("td", { className: i < 2 ? "n" : "" }, text))));
  return h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
}

const names = (receipt, or) => receipt?.data?.map(({ name }) => name).join(or) ?? "";

function facts({ receipt, url, file }, metric) {
  const r = receipt ?? {};
  const { value, unit, n, ci95 } = r.metrics?.[metric] ?? {};
  const range = ci95 ? `, 95 % interval ${ci95.map(exact).join(" to ")}` : "";
  const machine = Object.entries(r.environment ?? {}).map((item) => item.join(" ")).join(" · ");
  const lines = { Value: n && `${exact(value)} ${unit}, n = ${num(n)}${range}`, Evidence: r.evidence, Command: r.command, Commit: r.commit, Date: r.date,
    Machine: machine, Data: names(r, ", "), Losses: r.losses?.join(" "), File: url && h("a", { href: url }, file) };
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
  const found = await check(config, kind);
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
  $("#v-drop b").textContent = names(receipt, " or ");
  $("#v-drop input").onchange = async ({ target }) => target.files[0] && run(await target.files[0].arrayBuffer());
  await run();
}
