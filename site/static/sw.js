// Offline after the first load. The build puts the address of {version, core, rest} in place of the name below: `core` is
// cached when the worker is installed, `rest` when the browser is idle. Hashed files come from the cache, pages from
// the network while there is one. A full disk costs the offline copy, never the page.

const LIST = "__PRECACHE__";
const NAME = "servelab";
let list;

const precache = async () => (list ??= await (await fetch(LIST)).json());
const store = async () => caches.open(`${NAME}-${(await precache()).version}`);

async function keep(urls) {
  const cache = await store();
  for (const url of urls) {
    try {
      if (!(await cache.match(url))) await cache.add(url);
    } catch {
      return; // offline again, or no room
    }
  }
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
  if (reply.ok && reply.status === 200) {
    const copy = reply.clone();
    store().then((cache) => cache.put(request, copy)).catch(() => {});
  }
  return reply;
}

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(precache().then(({ core }) => keep(core)).catch(() => {}));
});

self.addEventListener("activate", (event) => {
  const tidy = async () => {
    const { version, rest } = await precache();
    for (const name of await caches.keys()) {
      if (name.startsWith(NAME) && name !== `${NAME}-${version}` && name !== `${NAME}-pages`) await caches.delete(name);
    }
    await self.clients.claim();
    keep(rest);
  };
  event.waitUntil(tidy().catch(() => {}));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  const hashed = /-[0-9a-f]{8,}[./]/.test(url.pathname);
  event.respondWith(hashed ? kept(request) : fresh(request));
});
