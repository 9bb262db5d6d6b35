// The worker in which the site's pages run Python. Made with `new Worker(address, {type: "module"})`.
//
// It takes   {type: "load", page}                      start Python, if it has not been; a fresh namespace for a page
//            {type: "run", cell, source, random, tag}  run a cell; random: [seed, draws] or null
//            {type: "forget"}                          a fresh namespace
//            {type: "pause"}                           end a cell that runs in slices, after the present one
// and sends  {type: "progress", text, share}           while it loads: what it does, and how far it is, from 0 to 1
//            {type: "ready", seconds, fromImage}
//            {type: "output", tag, output}             as a notebook's file has it, while the cell runs
//            {type: "slices", tag}                     the cell goes on in slices, and can be paused
//            {type: "done", tag, seconds, failed, paused}
//            {type: "broken", text}                    Python cannot go on
//
// Whoever wants to stop another cell ends the worker.
//
// Why not one Python for all tabs: a page can end a SharedWorker's only by what ends it for the others too, for there is no
// Worker and no SharedArrayBuffer in one (Chromium 156), and it is gone when a reader goes from the only page to the next.
// So each page has its own, and the browser keeps an image of its memory, from which it starts in half the time.
//
// Why not thebe-lite 0.5 (tried on 2026-11-23): it cannot stop a cell, its restart ends the session, it asks other hosts
// for Python unless it is patched, and with the same packages it took 12 MB and 9 s to the first output, this 9 and 6.

import { loadPyodide } from "./core/pyodide.mjs";
import { startPython } from "./page_python.js";

const address = (path) => new URL(path, import.meta.url).href;
const seconds = (from) => (performance.now() - from) / 1000;
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

// What takes bytes comes first; then Python starts and imports NumPy and the course, which takes about as long again.
const SHARE_OF_LOADING = 0.6;
const SHARE_OF_STARTING = 0.1; // each of the three things that it then does

const IMAGES = "course-python"; // where the browser keeps the image of Python's memory

let starting = null; // a promise of what startPython returns
let broken = false;
let fromImage = false;

// --- Files -----------------------------------------------------------------------------------------------

// Fetch files, each {path, bytes}, and tell how far it is; what they are unpacked, in their order.
async function fetchAll(files, total) {
  let got = 0;
  const tell = (bytes) => {
    got += bytes;
    const share = Math.min(1, got / total);
    const text = `fetching Python, ${megabytes(got)} of ${megabytes(total)} MB`;
    postMessage({ type: "progress", text, share: share * SHARE_OF_LOADING });
  };
  return Promise.all(files.map((file) => fetchOne(file, tell)));
}

async function fetchOne(file, tell) {
  const response = await fetch(address(file.path));
  if (!response.ok) throw new Error(`${file.path}: the server answers ${response.status}`);
  const counted = new TransformStream({
    transform(chunk, controller) {
      tell(chunk.byteLength);
      controller.enqueue(chunk);
    },
  });
  const packed = await new Response(response.body.pipeThrough(counted)).arrayBuffer();
  return isPacked(packed) ? unpacked(packed) : packed;
}

// A server may say that a .gz file is a compressed answer, which the browser then has unpacked by itself.
function isPacked(buffer) {
  const [first, second] = new Uint8Array(buffer, 0, 2);
  return first === 0x1f && second === 0x8b;
}

function unpacked(buffer) {
  const stream = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// The same for one file, while Python waits: a worker may do that.
function fetchNow(file) {
  const request = new XMLHttpRequest();
  request.open("GET", address(file.path), false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${file.path}: the server answers ${request.status}`);
  return new Uint8Array(request.response);
}

// --- The image of Python's memory ------------------------------------------------------------------------

const imageOf = (version) => address(`image/${version}`); // no file has this address: it is a name
const SUM = "X-Sum"; // a header: a damaged image would be a damaged Python

async function sum(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))));
}

// That of an earlier start of the same Python, or null: the first one, or a browser that keeps nothing.
async function keptImage(version) {
  try {
    const kept = await (await caches.open(IMAGES)).match(imageOf(version));
    const image = new Uint8Array(await kept.arrayBuffer());
    return (await sum(image)) === kept.headers.get(SUM) ? image : null;
  } catch {
    return null;
  }
}

async function keepImage(version, image) {
  try {
    const cache = await caches.open(IMAGES);
    await Promise.all((await cache.keys()).map((one) => cache.delete(one)));
    await cache.put(imageOf(version), new Response(image, { headers: { [SUM]: await sum(image) } }));
  } catch {} // there is no room, and the next start is as slow as this one
}

// --- Python ----------------------------------------------------------------------------------------------

async function start() {
  const manifest = await (await fetch(address("site.json"), { cache: "no-cache" })).json();
  const core = Object.keys(manifest.core);
  const image = await keptImage(manifest.version);
  fromImage = image !== null;
  const entries = [...Object.values(manifest.core), manifest.archives.packages, manifest.archives.course];
  const files = await fetchAll(entries, manifest.bytes);
  const [packages, course] = files.slice(core.length);
  const fetched = Object.fromEntries(core.map((name, i) => [name, files[i]]));

  const script = new Blob([fetched["pyodide.asm.js"]], { type: "text/javascript" });
  const scriptAddress = URL.createObjectURL(script);
  await import(scriptAddress);
  URL.revokeObjectURL(scriptAddress);

  // Pyodide asks for its files by name: it gets those that are here.
  const ask = self.fetch;
  self.fetch = (what, ...rest) => {
    const name = String(what?.url ?? what).split("/").pop();
    if (!(name in fetched)) return ask(what, ...rest);
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return Promise.resolve(new Response(fetched[name], { headers: { "Content-Type": type } }));
  };
  let share = SHARE_OF_LOADING;
  const tell = (text) => postMessage({ type: "progress", text, share: (share += SHARE_OF_STARTING) });
  const keep = (made) => keepImage(manifest.version, made);
  const archives = { packages: new Uint8Array(packages), course: new Uint8Array(course) };
  const settings = { indexURL: address("core/") };
  const from = (one) => startPython(loadPyodide, settings, archives, manifest.data, fetchNow, { image: one, keep, tell });
  try {
    if (!fromImage) return await from(null);
    return await from(image).catch(() => {
      fromImage = false; // a damaged one is replaced
      share = SHARE_OF_LOADING;
      return from(null);
    });
  } finally {
    self.fetch = ask;
  }
}

function breakDown(error) {
  broken = true;
  postMessage({ type: "broken", text: String(error?.message ?? error) });
}

const SLICE = 0.1; // seconds
let paused = false;

async function run({ source, random, tag }) {
  const python = await starting;
  const from = performance.now();
  const hear = (output) => postMessage({ type: "output", tag, output });
  paused = false;
  let well = python.run(source, random, hear);
  if (python.hasMore()) postMessage({ type: "slices", tag });
  while (python.hasMore() && !paused) {
    well = python.goOn(SLICE, hear);
    await new Promise((next) => setTimeout(next)); // a message may come in
  }
  const cut = python.hasMore(); // a pause in the last slice cuts nothing
  if (cut) python.drop(hear);
  postMessage({ type: "done", tag, seconds: seconds(from), failed: !well, paused: cut });
}

async function load() {
  const from = performance.now();
  const fresh = starting === null;
  starting ??= start();
  const python = await starting;
  if (!fresh) python.forget();
  postMessage({ type: "ready", seconds: seconds(from), fromImage });
}

const answers = { load, run, forget: async () => (await starting)?.forget() };

// One message after the other: a cell that is asked for while Python starts waits for it. A pause does not wait.
let last = Promise.resolve();
self.onmessage = ({ data }) => {
  if (data.type === "pause") paused = true;
  else last = last.then(() => (broken ? undefined : answers[data.type](data))).catch(breakDown);
};
