/* Downloads with real byte counts, a name for every way to fail, and a watchdog for silence. */

/** A failure with a name, what it means, and what to do; `stage` is where it happened. */
export class BootError extends Error {
  constructor(stage, name, message, fix) {
    super(message);
    Object.assign(this, { stage, name, fix });
  }
}

const SILENCE = 10; // seconds
export const REDEPLOY = "Reload the page. If it stays, the site is incomplete: build and deploy it again.";
const CONNECT = "Check the connection, then reload the page.";
const MAGIC = "0,97,115,109"; // \0asm

/** Fetch `url`: part = {file, bytes, raw, compile?} with `bytes` on the wire (as stored) and `raw` after inflating.
 * Returns Uint8Array(raw), or with `compile` a WebAssembly.Module. report(bytes) counts stored bytes. */
export async function download(url, part, stage, signal, report) {
  let response;
  try {
    response = await fetch(url, { signal });
  } catch (error) {
    throw new BootError(stage, "NoAnswer", `${part.file} could not be fetched (${error.message})`, CONNECT);
  }
  if (!response.ok) throw new BootError(stage, "MissingFile", `${part.file} answered ${response.status}`, REDEPLOY);
  let seen = 0;
  const transform = (chunk, out) => {
    seen += chunk.length;
    report(Math.min(seen, part.bytes)); // an inflating browser counts more
    out.enqueue(chunk);
  };
  try {
    const body = await inflated(response.body.pipeThrough(new TransformStream({ transform })));
    return part.compile ? await compiled(body, part, stage) : await collected(body, part, stage);
  } catch (error) {
    if (error instanceof BootError && error.name !== "WrongSize") throw error;
    if (seen < part.bytes) {
      throw new BootError(stage, "TruncatedDownload", `${part.file} ended after ${seen} of ${part.bytes} bytes`, CONNECT);
    }
    throw new BootError(stage, "DamagedFile", `${part.file} cannot be read (${error.message})`, REDEPLOY);
  }
}

/** Look at the first chunk of a stream: [chunk, the whole stream]. */
async function peeked(stream) {
  const [one, whole] = stream.tee();
  const reader = one.getReader();
  const { value = new Uint8Array() } = await reader.read();
  reader.cancel();
  return [value, whole];
}

/** Inflate gzip, unless the host marked it as encoded and the browser has done it. */
async function inflated(stream) {
  const [head, whole] = await peeked(stream);
  return head[0] === 0x1f && head[1] === 0x8b ? whole.pipeThrough(new DecompressionStream("gzip")) : whole;
}

async function compiled(stream, part, stage) {
  const [head, whole] = await peeked(stream);
  if (head.subarray(0, 4).join() !== MAGIC) {
    const start = Array.from(head.subarray(0, 4), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    throw new BootError(stage, "BrokenWasm", `${part.file} is no WebAssembly: it begins with ${start || "nothing"}`, REDEPLOY);
  }
  return WebAssembly.compileStreaming(new Response(whole, { headers: { "Content-Type": "application/wasm" } }));
}

async function collected(stream, part, stage) {
  const out = new Uint8Array(await new Response(stream).arrayBuffer());
  if (out.length === part.raw) return out;
  throw new BootError(stage, "WrongSize", `${out.length} bytes instead of ${part.raw}`, REDEPLOY);
}

/** Run work(signal); every sign of life resets pulse = {quiet, stage}, and 10 s without one end it with a named error.
 * Seconds are ticks of this thread: a machine that stands still is not silence.
 */
export async function watched(pulse, work) {
  const abort = new AbortController();
  pulse.quiet = 0;
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setInterval(() => {
      if (++pulse.quiet < SILENCE) return;
      reject(new BootError(pulse.stage, "Silence", `nothing happened for ${SILENCE} s`, CONNECT));
    }, 1000);
  });
  try {
    return await Promise.race([work(abort.signal), silence]);
  } catch (error) {
    abort.abort();
    throw error;
  } finally {
    clearInterval(timer);
  }
}
