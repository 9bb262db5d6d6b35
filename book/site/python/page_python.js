// Python in WebAssembly with NumPy and the course, for the worker of the site's pages and for the check in Node.
//
// Most of a start is Python's own: 2.6 of 4.2 s in Chromium, 3 of 6 s in Node. An image of its memory, taken when it has
// started and has imported what NumPy and the course will, makes that 0.4 s. It holds no compiled package: NumPy comes
// afterwards.

const COURSE = "/course"; // as the repository: minigrad/, book/bert_course/, book/records/
const PACKAGES = "/lib/python3.12/site-packages";

// Of Python's own library, in the image. Not `random` and what imports it: each start must have draws of its own.
const IMPORTED = `
import __future__, ast, asyncio, base64, bisect, concurrent.futures, contextlib, copy, csv, ctypes, dataclasses, datetime
import decimal, difflib, fnmatch, functools, gzip, hashlib, html, importlib.resources, inspect, json, linecache, numbers
import pathlib, pickle, platform, shutil, subprocess, tarfile, textwrap, threading, traceback, typing, urllib.parse, zipfile
`;

// This Python was compiled as if there were room for 10,000 calls within C, but the browser's stack ends after some 700,
// and Python with it. Before that, a `__repr__` that calls itself is to be a RecursionError.
const CALLS_IN_C = 350;

const START = `
import ctypes, json, os, sys
PyThreadState_Get = ctypes.pythonapi.PyThreadState_Get
PyThreadState_Get.restype = ctypes.c_void_p
sys.path[:0] = ["${COURSE}", "${COURSE}/book"]
os.makedirs("${COURSE}/book", exist_ok=True)
os.chdir("${COURSE}/book")
calls = (ctypes.c_int * 3).from_address(PyThreadState_Get() + 16)  # left, limit, left within C: cpython/pystate.h
assert calls[1] == sys.getrecursionlimit()
calls[2] = ${CALLS_IN_C}
import page_numpy
from bert_course import stored
stored.bring = bring
from page_kernel import Kernel
kernel = Kernel(lambda output: send(json.dumps(output)), slices=True)
`;

// NumPy was compiled for a C library with backtrace(), which tells it who asks for a sum before it takes an operand's
// memory for the result. There is none here. One that finds no caller says so, and NumPy takes new memory.
// To be called when pyodide.asm.js has been loaded, before Python starts.
function giveBacktrace() {
  const create = globalThis._createPyodideModule;
  globalThis._createPyodideModule = (module) => {
    const instantiate = module.instantiateWasm;
    module.instantiateWasm = (imports, done) => {
      imports.env.backtrace = () => 0;
      return instantiate(imports, done);
    };
    return create(module);
  };
}

// A promise that fails where WebAssembly does not begin: with a memory that does not fit, loadPyodide tells that the console
// alone, and waits for ever.
function noBeginning() {
  return new Promise((_, fail) => {
    for (const name of ["instantiate", "instantiateStreaming"]) {
      const begin = WebAssembly[name];
      WebAssembly[name] = (...given) => {
        WebAssembly[name] = begin;
        const begun = begin(...given);
        begun.catch(fail);
        return begun;
      };
    }
  });
}

// Start Python; pyodide.asm.js has been loaded. loadPyodide and settings: those of the package pyodide.
// archives: the tar files of packages and course.
// data: what the course has stored, {name: {path, bytes}}. fetchNow(entry): the tar file of one, at once, compressed or not.
// image: that of an earlier start, or null; keep(image) is then called with one. tell(words): what it does at the moment.
// Returns what runs cells.
export async function startPython(loadPyodide, settings, archives, data, fetchNow, { image, keep, tell = () => {} }) {
  giveBacktrace();
  tell("starting Python");
  const loading = loadPyodide({
    ...settings,
    env: { HOME: "/home/reader", MINIGRAD_PROGRESS: "off" },
    ...(image ? { _loadSnapshot: image } : { _makeSnapshot: true }),
  });
  const pyodide = await Promise.race([loading, noBeginning()]);
  if (!image) {
    pyodide.runPython(IMPORTED);
    keep(pyodide.makeMemorySnapshot());
  }
  tell("unpacking NumPy and the course");
  const unpack = (tar, folder, format = "tar") => pyodide.unpackArchive(tar, format, { extractDir: folder });
  unpack(archives.packages, PACKAGES);
  unpack(archives.course, COURSE);

  // What is stored comes when it is asked for: nobody waits for a model that the page does not use.
  const there = new Set();
  const bring = (name) => {
    if (there.has(name) || !Object.hasOwn(data, name)) return;
    const file = fetchNow(data[name]);
    unpack(file, COURSE, file[0] === 0x1f && file[1] === 0x8b ? "gztar" : "tar"); // as the server sends it
    there.add(name);
  };

  tell("importing NumPy and the course");
  let onOutput = () => {};
  const names = pyodide.globals;
  names.set("bring", bring);
  names.set("send", (text) => onOutput(JSON.parse(text)));
  pyodide.runPython(START);
  const kernel = names.get("kernel");

  // hear: called with each output of what `act` does.
  const heard = (hear, act) => {
    onOutput = hear;
    try {
      return act();
    } finally {
      onOutput = () => {};
    }
  };

  return {
    forget: () => kernel.forget(),
    // Run a cell; returns whether it went well. random: [seed, draws] or null.
    run(source, random, hear) {
      const state = random ? pyodide.toPy(random) : undefined;
      try {
        return heard(hear, () => kernel.run(source, state));
      } finally {
        state?.destroy();
      }
    },
    // A training goes on after its cell, a slice at a time: between two of them the page can hear its reader.
    hasMore: () => kernel.has_more,
    goOn: (seconds, hear) => heard(hear, () => kernel.go_on(seconds)),
    drop: (hear) => heard(hear, () => kernel.drop()),
  };
}

// Put an output to those of its cell, as Jupyter does: one that is updated takes the place of what it was.
export function keep(outputs, output) {
  const { output_type: kind, transient, ...rest } = output;
  if (kind !== "update_display_data") return outputs.push(output);
  const old = outputs.find((one) => one.transient?.display_id === transient.display_id);
  if (old) Object.assign(old, rest);
}
