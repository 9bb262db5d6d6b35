// Pages that were seen, and Python if it was, without a network: what the site answers is kept, and given again where the
// network has no answer. With a network every page is today's.
const KEPT = "course-site";
const STAMPED = /\/_static\/python\/(core|archives)\/.*\.[0-9a-f]{12}\.gz$/; // its name says what is in it: never another thing
const ABOUT = /\/_static\/python\/site\.json$/; // which of these are of today

const TO_KEEP_ELSEWHERE = /\.(zip|pdf)$/; // a reader saves these

const open = () => caches.open(KEPT);
const key = (request) => (request.mode === "navigate" ? request.url.split("?")[0] : request); // each search is one page
const kept = async (request) => (await open()).match(key(request));

async function keep(request, answer) {
  const cache = await open();
  if (ABOUT.test(request.url)) await prune(cache, await answer.clone().json());
  await cache.put(key(request), answer);
}

// Forget what an older Python was made of.
async function prune(cache, { core, archives, data }) {
  const today = [core, archives, data].flatMap((files) => Object.values(files || {})).map(({ path }) => path);
  const old = (await cache.keys()).filter(({ url }) => STAMPED.test(url) && !today.some((path) => url.endsWith(path)));
  await Promise.all(old.map((one) => cache.delete(one)));
}

async function fresh(event) {
  const answer = await fetch(event.request);
  if (answer.ok && answer.type === "basic") event.waitUntil(keep(event.request, answer.clone()).catch(() => {})); // if there is room
  return answer;
}

async function answered(event) {
  if (STAMPED.test(event.request.url)) return (await kept(event.request)) || fresh(event);
  try {
    return await fresh(event);
  } catch (error) {
    const found = await kept(event.request);
    if (found) return found;
    if (event.request.mode !== "navigate") throw error;
    const text = "<!DOCTYPE html><meta name=viewport content='width=device-width'><link rel=icon href='data:,'><title>Offline</title><body style='font: 1.1rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem'><h1>You are offline</h1><p>You have not read this page in this browser yet, so it is not here. The pages that you have read are. <a href='javascript:history.back()'>Back</a></p>";
    return new Response(text, { headers: { "Content-Type": "text/html; charset=utf-8" } });
  }
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || TO_KEEP_ELSEWHERE.test(pathname) || request.headers.has("range")) return;
  event.respondWith(answered(event));
});

// A page that came before there was a worker says what it loaded.
self.addEventListener("message", (event) => {
  const missing = async (url) => (await kept(new Request(url))) || keep(new Request(url), await fetch(url));
  event.waitUntil(Promise.allSettled(event.data.keep.map(missing)));
});
