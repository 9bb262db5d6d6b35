// The page's Python: one worker that runs one cell after the other. It is made when the first cell runs, or before that
// where this browser has had it: then it is there when it is wanted, and nobody who only reads loads 9 MB.
course.python = (function () {
  const FOLDER = new URL(`${document.documentElement.dataset.content_root}_static/python/`, location.href);
  const SLOW_NETWORK = 120_000; // without a word from the worker for so many milliseconds, loading has failed

  class Stopped extends Error {}
  class Broken extends Error {}

  let worker = null;
  let ready = null; // a promise; null before the first cell and after a stop
  let loaded = false;
  let heard = null; // the last word while it loads: text, share
  const listeners = new Set(); // who hears them
  let failLoading = null;
  let current = null; // the cell that runs: tag, what to do with its outputs, how to end its promise
  let tag = 0;

  function fetched(name) {
    return fetch(new URL(name, FOLDER)).then((answer) => {
      if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
      return answer.json();
    });
  }

  function end() {
    if (worker) worker.terminate();
    worker = ready = failLoading = heard = null;
    loaded = false;
    listeners.clear();
    document.dispatchEvent(new Event("course-python"));
  }

  function fail(error) {
    const waits = [failLoading, current && current.fail];
    current = null;
    end();
    waits.forEach((one) => one && one(error));
  }

  function start(page) {
    const begun = performance.now();
    worker = new Worker(new URL("worker.js", FOLDER), { type: "module" });
    const mine = worker;
    ready = new Promise((resolve, reject) => {
      failLoading = reject;
      let patience = 0;
      function wait() {
        clearTimeout(patience);
        patience = setTimeout(() => fail(new Broken("Python did not come: the network may be down.")), SLOW_NETWORK);
      }
      wait();
      worker.addEventListener("message", ({ data }) => {
        if (mine !== worker) return;
        if (data.type === "progress") {
          wait();
          heard = [data.text, data.share];
          listeners.forEach((hear) => hear(...heard));
        } else if (data.type === "ready") {
          clearTimeout(patience);
          loaded = true;
          failLoading = null;
          listeners.clear();
          about().then(({ version }) => course.keep("python", { version, seconds: (performance.now() - begun) / 1000 }));
          document.dispatchEvent(new Event("course-python"));
          resolve();
        } else if (data.type === "broken") {
          clearTimeout(patience);
          fail(new Broken(data.text));
        } else if (current && data.tag === current.tag) {
          if (data.type === "output") current.output(data.output);
          else if (data.type === "slices") current.canPause = true;
          else if (data.type === "done") {
            const { done } = current;
            current = null;
            done({ seconds: data.seconds, failed: data.failed, paused: data.paused });
          }
        }
      });
      worker.addEventListener("error", (event) => {
        if (mine !== worker) return;
        clearTimeout(patience);
        event.preventDefault();
        fail(new Broken(event.message || "Python could not be loaded."));
      });
    });
    worker.postMessage({ type: "load", page });
    document.dispatchEvent(new Event("course-python"));
    return ready;
  }

  // Load Python unless it is there. progress(text, share) hears how far it is.
  function load(page, progress) {
    if (progress && !loaded) {
      if (heard) progress(...heard);
      listeners.add(progress);
    }
    return ready || start(page);
  }

  let site = null; // a promise of what the site says of its Python
  function about() {
    site ??= fetched("site.json").catch((error) => {
      site = null;
      throw error;
    });
    return site;
  }

  // How long the last start took in this browser, in seconds; nothing if it has not had this Python.
  async function lastTook() {
    const { version } = await about();
    const kept = course.recall("python");
    return kept && kept.version === version ? kept.seconds : null;
  }

  return {
    Stopped,

    // What the site says of a page's cells.
    cells: (page) => fetched(`cells/${page}.json`),

    get state() {
      return !ready ? "none" : !loaded ? "loading" : current ? "busy" : "ready";
    },

    load,
    lastTook,

    // Whether the network answers. A browser may take itself to be online; what is asked for so, no service worker answers.
    reachable: () => fetch(new URL("site.json", FOLDER), { method: "HEAD", cache: "no-store" }).then(() => true, () => false),

    // Load Python in the background, where it is not the first time: it then comes from what the browser keeps.
    async warm(page) {
      if (ready || !course.recall("python")) return;
      try {
        if ((await lastTook()) && !ready) await load(page);
      } catch {} // whoever runs a cell will hear it
    },

    // Run one cell's source; output(one) gets what it puts out. Gives its seconds, and whether it failed or was paused.
    run({ id, source, random }, output) {
      return new Promise((done, failed) => {
        current = { tag: ++tag, output, done, fail: failed };
        worker.postMessage({ type: "run", cell: id, source, random: random || null, tag });
      });
    },

    // End a cell that trains step by step, after the present one: what it has learned stays. Returns whether that is
    // under way; whoever asks again wants more than that.
    pause() {
      const can = Boolean(current && current.canPause);
      if (can) worker.postMessage({ type: "pause" });
      if (can) current.canPause = false;
      return can;
    },

    // End Python in the middle of whatever it does. The next run loads it again.
    stop() {
      if (ready) fail(new Stopped());
    },
  };
})();
