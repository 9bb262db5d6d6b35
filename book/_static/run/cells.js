// The code boxes of a page: under each of them Run, Edit, Reset and Stop, and what came of a run. The author's text and
// the stored output can always be had back.
course.cells = (function () {
  const { element, add } = course.outputs;
  const cells = []; // those of the notebook, in its order; hidden ones have no box in the page
  const byId = new Map();
  const queue = []; // what the reader asked for: {target, list}
  let working = false;
  let clock = 0; // counts runs
  let stops = 0;

  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const took = (seconds) => (seconds < 0.05 ? "under 0.1 s" : seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`);

  // --- One cell -------------------------------------------------------------------------------------------

  class Cell {
    constructor(described, node, number) {
      Object.assign(this, described); // id, source, needs, random, runs, figure
      this.node = node; // null if the page does not show the cell
      this.number = number;
      this.text = described.source;
      this.ran = null; // {text, at, seconds, failed} in the Python that is there now
      this.result = null; // the same of the last run, even if that Python is gone; and its outputs
      this.editor = null;
      this.outdated = false;
      this.note = ""; // what goes before all else in the row
      this.before = null; // what is to be done before it runs
      this.pre = node && node.querySelector(".cell_input:not([hidden]) pre");
      this.row = node && node.querySelector(".course-run");
    }

    get edited() {
      return this.text !== this.source;
    }

    get needed() {
      return this.needs.map((id) => byId.get(id)).filter(Boolean);
    }

    get hasRun() {
      return Boolean(this.ran) && !this.ran.failed && this.ran.text === this.text;
    }

    // Whether a run of another cell must run this one first. `needs` names what its needs need, too.
    get stale() {
      return !this.hasRun || this.needed.some((one) => !one.hasRun || one.ran.at > this.ran.at);
    }

    // Whether there is an output of a run and another one that is stored.
    get hasBoth() {
      return Boolean(this.result) && this.stored.nodes.length > 0 && (this.showsStored || this.box.classList.contains("course-fresh"));
    }

    // --- Its row of buttons ---

    furnish() {
      if (!this.row) return;
      if (this.runs !== true) {
        this.row.append(element("span", "course-run-why", this.runs));
        return;
      }
      const button = (name, press) => {
        const made = element("button", "course-run-button", name);
        made.type = "button";
        made.setAttribute("aria-label", `${name} cell ${this.number}`);
        made.addEventListener("click", press);
        return made;
      };
      this.buttons = {
        run: button("Run", () => ask(this)),
        edit: button("Edit", () => this.edit()),
        reset: button("Reset", () => this.reset()),
        stop: button("Stop", stop),
        above: button("Run all above first", () => askAllAbove(this)),
        stored: button("Stored output", () => this.show(!this.showsStored)),
      };
      this.status = element("span", "course-run-status");
      this.status.setAttribute("role", "status");
      this.bar = element("progress");
      this.bar.max = 1;
      this.bar.setAttribute("aria-label", "loading Python");
      const { run, edit, reset, stop: end, above, stored } = this.buttons;
      this.row.setAttribute("role", "group");
      this.row.setAttribute("aria-label", `Cell ${this.number}`);
      this.row.append(run, edit, reset, end, this.bar, this.status, above, stored);
      const kept = course.typed.of(this.id);
      if (kept && kept.source !== this.source) {
        this.text = kept.source;
        this.outdated = course.typed.outdated(kept, this.source);
        this.colour();
      }
      this.update();
    }

    update() {
      if (!this.buttons) return;
      const { run, edit, reset, stop: end, above, stored } = this.buttons;
      const busy = ["loads", "needs", "runs"].includes(this.state);
      run.setAttribute("aria-disabled", String(Boolean(this.state)));
      edit.hidden = Boolean(this.editor);
      reset.hidden = !this.edited;
      if (!busy && document.activeElement === end) run.focus();
      end.hidden = !busy;
      this.bar.hidden = this.state !== "loads";
      above.hidden = Boolean(this.state) || !this.misses;
      stored.hidden = Boolean(this.state) || !this.hasBoth;
      stored.textContent = this.showsStored ? "Output of this run" : "Stored output";
      stored.setAttribute("aria-label", `${stored.textContent} of cell ${this.number}`);
      this.say(this.state ? this.note : this.words());
      this.node.classList.toggle("course-edited", this.edited);
      this.node.classList.toggle("course-runs", this.state === "runs");
      this.node.classList.toggle("course-waits", this.state === "waits");
    }

    say(text) {
      if (this.status && this.status.textContent !== text) this.status.textContent = text;
    }

    // What there is to say of a cell that does nothing at the moment.
    words() {
      const said = this.note ? [this.note] : [];
      const { result } = this;
      if (result && !this.showsStored) {
        const verb = result.stopped ? "stopped after" : result.failed ? "failed here, after" : "run here, in";
        said.push(`${verb} ${took(result.seconds)}${result.text === this.text ? "" : ", before your last change"}`);
        if (this.pictureKept) said.push(this.pictureKept);
      } else if (result) said.push("this is the stored output");
      if (this.outdated) said.push("the page’s code has changed since you typed this");
      if (this.edited && !course.typed.isKept) said.push("edited; this browser keeps nothing, so it is gone when you leave");
      else if (this.edited && !this.node.classList.contains("course-answer")) said.push("edited, kept in this browser");
      return said.join("; ");
    }

    // --- Its code ---

    colour() {
      if (this.editor) this.editor.set(this.text);
      else if (this.edited) this.pre.innerHTML = `<span></span>${course.highlight(this.text)}\n`;
      else this.pre.innerHTML = this.authored;
    }

    edit(focus = true) {
      if (!this.editor) {
        this.editor = course.editor(this.pre, this.text, `Code of cell ${this.number}`, {
          input: (text) => this.type(text),
          run: () => ask(this),
          leave: () => this.leave(),
        });
        this.update();
      }
      if (focus) this.editor.field.focus();
    }

    type(text) {
      this.text = text;
      if (this.edited) course.typed.keep(this.id, text, this.source);
      else course.typed.drop(this.id);
      this.outdated = false;
      this.update();
      course.cells.changed();
    }

    // An answer's editor stays; the focus goes on to the button below it.
    leave() {
      if (this.node.classList.contains("course-answer")) return this.buttons.run.focus();
      this.editor.close();
      this.editor = null;
      this.colour();
      this.update();
      this.buttons.edit.focus();
    }

    // The author's text, and the output that belongs to it.
    reset() {
      const focused = document.activeElement === this.buttons.reset;
      course.typed.drop(this.id);
      this.text = this.source;
      this.outdated = false;
      if (this.editor && !this.node.classList.contains("course-answer")) {
        this.editor.close();
        this.editor = null;
      }
      this.colour();
      if (this.result) this.show(true);
      this.result = null;
      this.fresh = null;
      this.note = "";
      this.misses = false;
      this.update();
      if (focused) (this.editor ? this.editor.field : this.buttons.edit).focus();
      course.cells.changed();
    }

    // --- What it puts out ---

    get output() {
      if (!this.box) {
        this.box = this.node.querySelector(":scope > .cell_output");
        if (!this.box) {
          this.box = element("div", "cell_output docutils container");
          this.node.append(this.box);
        }
        this.stored = { nodes: [...this.box.childNodes].filter((one) => one.nodeType === 1), classes: [...this.box.classList] };
      }
      return this.box;
    }

    // An empty box for a new output, in place of the one that is there.
    clear() {
      this.showsStored = false;
      this.output.replaceChildren();
      this.box.classList.remove("course-listing");
      this.box.classList.add("course-fresh");
      this.emptied = true;
    }

    // Back to the stored output, or again to that of the last run.
    show(stored) {
      if (!this.fresh) this.fresh = { nodes: [...this.output.childNodes], classes: [...this.box.classList] };
      const { nodes, classes } = stored ? this.stored : this.fresh;
      const hidden = this.box.classList.contains("course-asked");
      this.box.className = classes.join(" ");
      this.box.classList.toggle("course-asked", hidden);
      this.box.replaceChildren(...nodes);
      this.showsStored = stored;
      this.update();
      document.dispatchEvent(new Event("course-opened"));
    }

    put(output) {
      this.outputs.push(output);
      if (!this.node) return;
      if (output.output_type === "clear") {
        this.outputs = [];
        this.clear();
        return;
      }
      if (!this.emptied) this.clear();
      add(this.output, output);
    }

    // A figure that was not drawn here: the stored one stays, under what else was put out.
    keepPicture() {
      this.pictureKept = "";
      if (!this.figure || this.output.querySelector(".course-figure:not(.is-stored)")) return;
      const pictures = this.stored.nodes.filter((one) => one.querySelector(".course-figure"));
      if (!pictures.length) return;
      for (const note of this.output.querySelectorAll(".course-figure.is-stored")) note.closest(".output").remove();
      if (!this.output.childElementCount) this.box.classList.remove("course-fresh");
      this.output.append(...pictures);
      this.pictureKept = this.edited ? "the picture is the stored one, of the page’s own code" : "the picture is the stored one";
    }

    async run() {
      const { text } = this;
      this.state = "runs";
      this.note = "runs …";
      this.misses = false;
      this.emptied = false;
      this.outputs = [];
      if (this.node) void this.output;
      const start = performance.now();
      const watch = setInterval(() => this.say(`runs, for ${Math.round((performance.now() - start) / 1000)} s …`), 1000);
      if (this.node) this.node.classList.add("course-dims");
      this.update();
      try {
        if (this.before) await this.before();
        const { seconds, failed } = await course.python.run({ id: this.id, source: text, random: this.random }, (output) => this.put(output));
        this.fresh = null;
        this.ran = { text, at: ++clock, seconds, failed };
        this.result = { ...this.ran, outputs: this.outputs };
        if (this.node) {
          if (!this.emptied) this.clear();
          if (!failed) this.keepPicture();
        }
        const error = this.outputs.find((one) => one.output_type === "error");
        this.misses = Boolean(error && error.ename === "NameError" && above(this).some((one) => one.stale));
        this.note = "";
        return !failed;
      } catch (error) {
        this.note = "";
        if (this.emptied) {
          this.fresh = null;
          this.result = { text, seconds: (performance.now() - start) / 1000, failed: true, stopped: true, outputs: this.outputs };
        }
        throw error;
      } finally {
        clearInterval(watch);
        this.state = "";
        if (this.node) {
          this.node.classList.remove("course-dims");
          this.update();
          this.node.dispatchEvent(new CustomEvent("course-output", { bubbles: true, detail: this }));
          document.dispatchEvent(new Event("course-opened"));
        }
      }
    }
  }

  // --- What the reader asks for ---------------------------------------------------------------------------

  const above = (cell) => cells.slice(0, cells.indexOf(cell)).filter((one) => one.runs === true);

  // Run a cell, after those above that it needs; list: instead of those.
  function ask(target, list = null) {
    if (target.runs !== true || target.state) return;
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
        ended(job, error);
      }
    }
    working = false;
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
        target.note = `first runs ${plural(first.length, "cell")} above${list ? "" : " that this one needs"}: ${done + 1} of ${first.length}`;
        target.update();
        const well = await one.run();
        if (one.node) one.node.classList.remove("course-needed");
        if (!well) {
          target.state = "";
          target.note = `not run: ${one.node ? `cell ${one.number}` : "a hidden cell"} above, which it needs, failed`;
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
    target.note = "starting Python …";
    target.bar.removeAttribute("value");
    target.update();
    const stopsSoFar = stops;
    const { version, bytes } = await course.python.about();
    if (stops > stopsSoFar) throw new course.python.Stopped();
    const known = course.recall("python") === version; // then the browser has it
    const what = known ? "starting Python" : `loading Python, ${Math.ceil(bytes / 1e6)} MB, once`;
    const say = (text, share) => {
      const done = text.replace(/^(Loading|Starting) Python(: )?/, ""); // the line says that already
      target.note = `${what}${done ? `: ${done}` : " …"}${after}`;
      if (share !== undefined) target.bar.value = share;
      target.update();
    };
    say("");
    await course.python.load(course.page, say);
    if (!known) course.keep("python", version);
  }

  // A stop, or a Python that cannot go on: all that was asked for is off, and a new Python knows nothing.
  function ended({ target }, error) {
    const stopped = error instanceof course.python.Stopped;
    const waited = queue.splice(0).map((job) => job.target);
    cells.forEach((one) => { one.ran = null; });
    [target, ...waited].forEach((one) => {
      one.state = "";
      one.note = one !== target ? "not run" : stopped ? "stopped; the next run starts Python afresh" : `Python cannot go on (${error.message}); the next run starts it afresh`;
      one.update();
    });
  }

  function stop() {
    stops += 1;
    course.python.stop();
  }

  // Forget what ran, without touching what is shown.
  function afresh() {
    stop();
    cells.forEach((one) => { one.ran = null; });
  }

  // --- The page -------------------------------------------------------------------------------------------

  // Room for the buttons, so that nothing moves when they come.
  function makeRoom() {
    return [...document.querySelectorAll(".cell[data-cell]")].filter((node) => {
      const input = node.querySelector(".cell_input:not([hidden])");
      if (input) input.after(element("div", "course-run"));
      return input;
    });
  }

  async function begin() {
    if (!makeRoom().length) return;
    if (location.protocol === "file:" || !window.Worker || !window.WebAssembly) {
      document.querySelectorAll(".course-run").forEach((row) => row.remove());
      sayWhyNot();
      return;
    }
    let described;
    try {
      described = (await course.python.cells(course.page)).cells;
    } catch {
      document.querySelectorAll(".course-run").forEach((row) => row.remove());
      return;
    }
    let number = 0;
    for (const one of described) {
      const node = document.querySelector(`.cell[data-cell="${CSS.escape(one.id)}"]`);
      const cell = new Cell(one, node, node ? ++number : 0);
      if (cell.pre) cell.authored = cell.pre.innerHTML;
      cells.push(cell);
      byId.set(cell.id, cell);
    }
    cells.forEach((cell) => cell.furnish());
    document.querySelectorAll(".course-run:empty").forEach((row) => row.remove()); // of an empty cell
    document.dispatchEvent(new Event("course-cells"));
    document.addEventListener("course-memory", forgotten);
  }

  // "Forget it all", or a reset in another tab.
  function forgotten() {
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
