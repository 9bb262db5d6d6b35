// The cells of a page: which run when the reader asks for one, what to say meanwhile, and what a stop means for the rest.
course.cells = (function () {
  const { element } = course.outputs;
  const OPEN = 3_000; // milliseconds that a page is looked at until Python starts
  const GONE = 300_000; // milliseconds out of sight until one that ran nothing ends
  const AGAIN = 2_000; // milliseconds from one look for the network to the next
  const cells = []; // those of the notebook, in its order; hidden ones have no box in the page
  const byId = new Map();
  const queue = []; // what the reader asked for: {target, list}
  let working = false;
  let stops = 0;
  let back = 0; // the timer of a run that waits for the network

  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  // --- What the reader asks for ---------------------------------------------------------------------------

  const above = (cell) => cells.slice(0, cells.indexOf(cell)).filter((one) => one.runs === true);

  // Run a cell, after those above that it needs; list: instead of those.
  function ask(target, list = null) {
    if (target.runs !== true || target.state) return;
    clearTimeout(back);
    const closed = target.node && target.node.querySelector(".course-prediction [aria-expanded='false']");
    if (closed) closed.click(); // who runs the cell wants to see what it puts out
    queue.push({ target, list });
    target.state = "waits";
    target.note = "waits for the cell that runs";
    target.update();
    if (!working) work();
  }

  function askAllAbove(target) {
    ask(target, above(target));
  }

  async function work() {
    working = true;
    course.cells.changed();
    while (queue.length) {
      const job = queue.shift();
      try {
        await runJob(job);
      } catch (error) {
        await ended(job, error);
      }
    }
    working = false;
    cells.forEach((one) => one.update()); // what is to run first has changed
    course.cells.changed();
  }

  async function runJob({ target, list }) {
    const first = (list || target.needed).filter((one) => one.runs === true && one.stale && one !== target);
    const shown = first.filter((one) => one.node);
    shown.forEach((one) => one.node.classList.add("course-needed"));
    try {
      await load(target, first.length);
      for (const [done, one] of first.entries()) {
        target.state = "needs";
        const step = first.length > 1 ? ` (${done + 1} of ${first.length})` : "";
        const tell = (words) => {
          target.note = ["first ", one.buttons ? one : "a hidden cell above", `${step}, ${words}`];
          target.update();
        };
        tell("running …");
        const well = await one.run(tell);
        if (one.node) one.node.classList.remove("course-needed");
        if (!well || one.ran.paused) {
          target.state = "";
          target.note = ["not run: ", one.buttons ? one : "a hidden cell above", `, which it needs, ${well ? "was stopped" : "failed"}`];
          if (!one.node) one.outputs.forEach((output) => output.output_type === "error" && target.put(output));
          target.update();
          return;
        }
      }
      await target.run();
    } finally {
      shown.forEach((one) => one.node.classList.remove("course-needed"));
    }
  }

  async function load(target, needed) {
    if (course.python.state === "ready") return;
    const after = needed ? `; then ${plural(needed, "cell")} above that this one needs` : "";
    target.state = "loads";
    target.note = `starting Python${after} …`;
    target.bar.removeAttribute("value");
    target.update();
    const stopsSoFar = stops;
    const seconds = await course.python.lastTook();
    if (stops > stopsSoFar) throw new course.python.Stopped();
    await course.python.load(course.page, (text, share) => {
      target.note = `${seconds ? `starting Python, about ${Math.ceil(seconds)} s` : text}${after} …`;
      target.bar.value = share;
      target.update();
    });
  }

  // A stop, or a Python that cannot go on: all that was asked for is off, and a new Python knows nothing.
  async function ended({ target }, error) {
    const stopped = error instanceof course.python.Stopped;
    const offline = !stopped && !(await course.python.reachable());
    if (offline) whenBack(target);
    const why = stopped ? "stopped; Python starts afresh with the next run"
      : offline ? "you are offline, and Python is not here yet: it will start when you are back"
      : `Python cannot go on (${error.message}); the next run starts it afresh`;
    forgetQueue();
    cells.forEach((one) => { one.ran = null; });
    target.state = "";
    target.note = why;
    cells.forEach((one) => one.update()); // what they put out is that of a Python that is gone
  }

  // The run that there was no network for, once there is one.
  function whenBack(target) {
    clearTimeout(back);
    back = setTimeout(async () => ((await course.python.reachable()) ? ask(target) : whenBack(target)), AGAIN);
  }

  // A cell that trains step by step ends after the present one; anything else ends with its Python.
  function stop() {
    if (course.python.pause()) return forgetQueue();
    stops += 1;
    course.python.stop();
  }

  function forgetQueue() {
    for (const { target } of queue.splice(0)) {
      target.state = "";
      target.note = "not run";
      target.update();
    }
  }

  // Forget what ran, without touching what is shown.
  function afresh() {
    stops += 1;
    course.python.stop();
    cells.forEach((one) => { one.ran = null; });
  }

  // --- The page -------------------------------------------------------------------------------------------

  // Room for the buttons, so that nothing moves when they come.
  function makeRoom() {
    return [...document.querySelectorAll(".cell[data-cell]")].filter((node) => {
      const input = node.querySelector(".cell_input:not([hidden])");
      if (!input) return false;
      node.id = `cell-${node.dataset.cell}`;
      input.prepend(element("div", "course-corner"));
      input.after(element("div", "course-run"));
      return true;
    });
  }

  function clearRoom(which = "") {
    document.querySelectorAll(`:is(.course-corner, .course-run)${which}`).forEach((box) => box.remove());
  }

  async function begin() {
    if (!makeRoom().length) return;
    if (location.protocol === "file:" || !window.Worker || !window.WebAssembly) {
      clearRoom();
      sayWhyNot();
      return;
    }
    let described;
    try {
      described = (await course.python.cells(course.page)).cells;
    } catch {
      clearRoom();
      return;
    }
    let number = 0;
    for (const one of described) {
      const node = document.querySelector(`.cell[data-cell="${CSS.escape(one.id)}"]`);
      const cell = new course.Cell(one, node, node ? ++number : 0);
      if (cell.pre) cell.authored = cell.pre.innerHTML;
      cells.push(cell);
      byId.set(cell.id, cell);
    }
    cells.forEach((cell) => cell.build());
    cells.forEach((cell) => cell.update()); // what a cell says hangs on those that it needs
    document.querySelectorAll(".course-corner:empty").forEach((corner) => corner.remove()); // of a cell without code
    document.dispatchEvent(new Event("course-cells"));
    document.addEventListener("course-memory", forgotten);
    document.addEventListener("visibilitychange", keepWarm);
    keepWarm();
  }

  // Who looks at a page for a while may want to run its cells; a page that was left without a run needs no Python.
  let timer = 0;
  function keepWarm() {
    clearTimeout(timer);
    const letGo = () => working || cells.some((one) => one.ran) || course.python.stop();
    timer = document.hidden ? setTimeout(letGo, GONE) : setTimeout(() => course.python.warm(course.page), OPEN);
  }

  // "Forget it all", or a reset in another tab; and what was typed there, which is not taken over.
  function forgotten() {
    cells.filter((cell) => cell.buttons).forEach((cell) => cell.hearOfAnother());
    cells.filter((cell) => cell.edited && cell.buttons && !course.typed.of(cell.id)).forEach((cell) => cell.reset());
  }

  function sayWhyNot() {
    const line = element("p", "course-run-note");
    if (location.protocol === "file:") {
      const command = element("code", "literal", "python -m http.server --directory _build/html");
      line.append("The code on these pages can run in the browser, but not from a file: serve the site with ", command, " and open the address that it says.");
    } else line.append("The code on these pages can run in the browser, but this browser has no workers or no WebAssembly.");
    const title = document.querySelector("article.bd-article h1");
    const facts = document.querySelector(".course-facts");
    (facts || title).after(line);
  }

  document.addEventListener("DOMContentLoaded", begin);

  return {
    list: cells,
    find: (id) => byId.get(id),
    above,
    ask,
    askAllAbove,
    stop,
    afresh,
    get working() {
      return working;
    },
    changed() {
      document.dispatchEvent(new Event("course-python"));
    },
  };
})();
