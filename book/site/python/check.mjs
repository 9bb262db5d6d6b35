// Runs the cells of pages in Node, as the site's pages do, and prints what they put out.
//
//   node check.mjs SITE PYODIDE PAGE …      SITE: the folder _static/python; PYODIDE: that of the npm package
//
// Beside PYODIDE it keeps the image of Python's memory, as a browser does.
//
// Cells that take long, and those that need them, run where LONG_CELLS=1. Those that take five seconds and more, and those
// that need them, do not run where QUICK_CELLS=1.
//
// A line of JSON for each page: {page, ready, cells: [{id, ok, seconds, outputs}]}. Seconds are the processor's.

import { existsSync, readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [site, core, ...pages] = process.argv.slice(2).map((one, i) => (i < 2 ? path.resolve(one) : one));
const read = (name) => readFileSync(path.join(site, name));
const unpacked = ({ path }) => new Uint8Array(gunzipSync(read(path)));

// Pyodide's script is one line of a megabyte, which Node would print above the error.
process.on("uncaughtException", (error) => {
  console.error(error.stack);
  process.exit(1);
});

const { loadPyodide } = await import(pathToFileURL(path.join(core, "pyodide.mjs")));
await import(pathToFileURL(path.join(core, "pyodide.asm.js")));
const { keep: keepOutput, startPython } = await import("./page_python.js");

const spent = () => process.cpuUsage().user / 1e6;

const started = spent();
const { archives, data, core: files } = JSON.parse(read("site.json"));
const kept = path.join(core, "..", `image-${files["pyodide.asm.wasm"].path.split(".").at(-2)}`);
const image = existsSync(kept) ? new Uint8Array(readFileSync(kept)) : null;
const keep = (made) => {
  writeFileSync(`${kept}.${process.pid}`, made);
  renameSync(`${kept}.${process.pid}`, kept); // others read it meanwhile
};
const tars = { packages: unpacked(archives.packages), course: unpacked(archives.course) };
const python = await startPython(loadPyodide, { indexURL: core + path.sep }, tars, data, unpacked, { image, keep });
const ready = spent() - started;

// The notebooks out of which answers are taken, as book/site/static/python/answers.js brings them.
const answers = path.join(site, "..", "..", "_sources", "exercises");

function bringAnswers({ source }) {
  if (!/\b(all_parts|own_file)\(/.test(source)) return;
  for (const stem of readdirSync(answers).map((name) => path.parse(name).name)) {
    const notebook = readFileSync(path.join(answers, `${stem}.ipynb`), "utf-8");
    python.run(`__import__("pathlib").Path("${stem}.ipynb").write_text(${JSON.stringify(notebook)})`, null, () => {});
  }
}

for (const page of pages) {
  const { cells } = JSON.parse(read(`cells/${page}.json`));
  python.forget();
  const done = [];
  const late = new Set(cells.filter((one) => one.seconds && process.env.QUICK_CELLS === "1").map((one) => one.id));
  const asked = (one) => one.runs === true && (!one.long || process.env.LONG_CELLS === "1");
  for (const cell of cells.filter((one) => asked(one) && ![one.id, ...one.needs].some((id) => late.has(id)))) {
    const outputs = [];
    bringAnswers(cell);
    const from = spent();
    const hear = (output) => keepOutput(outputs, output);
    let ok = python.run(cell.source, cell.random, hear);
    while (python.hasMore()) ok = python.goOn(Infinity, hear);
    const seconds = spent() - from;
    if (process.env.SHOW_CELLS) console.error(page, cell.id, ok, seconds.toFixed(2));
    done.push({ id: cell.id, ok, seconds, outputs });
  }
  const line = JSON.stringify({ page, ready, cells: done }) + "\n";
  await new Promise((written) => process.stdout.write(line, written)); // all of it: a pipe may take less at a time
}
process.exit(0);
