// Offline after the first load. The build puts the address of {version, core, rest} in place of the name below: `core` is
// cached when the worker is installed, `rest` when the browser is idle. Hashed files come from the cache, pages from
// the network while there is one. A full disk costs the offline copy, never the page.

const LIST = "__PRECACHE__";
const NAME = "servelab";
let list;

const precache = async () => (list ??= await (await fetch(LIST)).json());
const store = async () => caches.open(`${NAME}-${(await precache()).version}`);

async function keep(part) {
  const cache = await store();
  for (const url of list[part]) {
    try {
      if (!(await cache.match(url))) await cache.add(url);
    } catch {
      return; // offline again, or no room
    }
  }
}

/** What is left to keep, after a while: a page that is opening comes first. */
async function later() {
  await new Promise((done) => setTimeout(done, 8000));
  await keep("rest");
}

async function fresh(request) {
  const cache = await caches.open(`${NAME}-pages`);
  try {
    const reply = await fetch(request);
    if (reply.ok) cache.put(request, reply.clone()).catch(() => {});
    return reply;
  } catch (error) {
    const kept = await caches.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}

async function kept(request) {
  const found = await caches.match(request);
  if (found) return found;
  const reply = await fetch(request);
  if (reply.status === 200) {
    const copy = reply.clone();
    store().then((cache) => cache.put(request, copy)).catch(() => {});
  }
  return reply;
}

self.addEventListener("install", (event) => event.waitUntil(keep("core").catch(() => {})));

// A new version takes over when the last page of the old one is closed; then the old files go.
self.addEventListener("activate", (event) => {
  const tidy = async () => {
    const { version } = await precache();
    for (const name of await caches.keys()) {
      if (name.startsWith(NAME) && ![`${NAME}-${version}`, `${NAME}-pages`].includes(name)) await caches.delete(name);
    }
    await self.clients.claim();
    await keep("rest");
  };
  event.waitUntil(tidy().catch(() => {}));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  event.respondWith(/-[0-9a-f]{8,}[./]/.test(url.pathname) ? kept(request) : fresh(request));
  if (request.mode === "navigate") event.waitUntil(later().catch(() => {}));
});
