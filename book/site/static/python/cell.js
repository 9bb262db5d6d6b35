// One cell of the page: the buttons in its box's corner (Edit, Run, Stop), the row below with what there is to say, its
// code, and what it puts out. The author's text and the stored output can always be had back. Which cell runs when is the
// business of cells.js.
course.Cell = (function () {
  const { element, add } = course.outputs;
  const LONG = 30; // seconds from which a run is one that the reader may not want to wait for
  let clock = 0; // counts runs

  const took = (seconds) => (seconds < 0.05 ? "under 0.1 s" : seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`);

  return class Cell {
    constructor(described, node, number) {
      Object.assign(this, described); // id, source, needs, random, runs, seconds
      this.node = node; // null if the page does not show the cell
      this.number = number;
      this.text = described.source;
      this.ran = null; // {text, at, seconds, failed} in the Python that is there now
      this.result = null; // the same of the last run, even if that Python is gone; and its outputs
      this.editor = null;
      this.outdated = false;
      this.elsewhere = false; // whether another tab keeps another text
      this.judges = false; // whether it is a check, whose verdict is on the text of another cell
      this.cut = false; // whether the last run was stopped
      this.note = ""; // what goes before all else in the row: a text, or a list of texts and cells
      this.before = null; // what is to be done before it runs
      this.pre = node && node.querySelector(".cell_input:not([hidden]) pre");
      this.corner = node && node.querySelector(".course-corner");
      this.row = node && node.querySelector(".course-run");
    }

    get edited() {
      return this.text !== this.source;
    }

    get needed() {
      return this.needs.map((id) => course.cells.find(id)).filter(Boolean);
    }

    get hasRun() {
      return Boolean(this.ran) && !this.ran.failed && this.ran.text === this.text;
    }

    // Whether a run of another cell must run this one first. `needs` names what its needs need, too.
    get stale() {
      return !this.hasRun || this.needed.some((one) => !one.hasRun || one.ran.at > this.ran.at);
    }

    // Whether the output that is shown is that of another text than the code that stands above it.
    get isOld() {
      const { result } = this;
      if (!result || this.showsStored) return this.edited;
      return this.cut || result.text !== this.text || (this.judges && this.needed.some((one, i) => one.text !== result.basis[i]));
    }

    // How long a run takes where the course was checked, with the cells that have to run first; 0 if that is not long.
    get expected() {
      return [this, ...this.needed.filter((one) => one.stale)].reduce((sum, one) => sum + one.seconds, 0);
    }

    // What the button says.
    get offer() {
      const { expected } = this;
      const about = expected > 90 ? `${Math.round(expected / 60)} min` : `${expected > LONG ? Math.round(expected / 5) * 5 : expected} s`;
      return expected > LONG ? `Run anyway (about ${about})` : expected ? `Run (about ${about})` : "Run";
    }

    // Whether there is an output of a run and another one that is stored.
    get hasBoth() {
      return Boolean(this.result) && this.stored.nodes.length > 0 && (this.showsStored || this.box.classList.contains("course-fresh"));
    }

    // --- Its buttons ---

    build() {
      if (!this.row) return;
      if (this.runs !== true) return this.refuse();
      const button = (name, press) => {
        const made = element("button", "course-run-button", name);
        made.type = "button";
        made.setAttribute("aria-label", `${name} cell ${this.number}`);
        made.addEventListener("click", press);
        return made;
      };
      this.buttons = {
        run: button("Run", () => course.cells.ask(this)),
        edit: button("Edit", () => this.edit()),
        reset: button("Reset", () => this.reset()),
        stop: button("Stop", ({ detail }) => detail > 1 || course.cells.stop()), // not the second click of a double one on Run
        above: button("Run all above first", () => course.cells.askAllAbove(this)),
        stored: button("Stored output", () => this.show(!this.showsStored)),
      };
      this.status = element("span", "course-run-status");
      this.status.setAttribute("role", "status");
      this.bar = element("progress");
      this.bar.max = 1;
      this.bar.setAttribute("aria-label", "loading Python");
      const { run, edit, reset, stop: end, above, stored } = this.buttons;
      for (const box of [this.corner, this.row]) {
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", `Cell ${this.number}`);
      }
      run.title = "Shift + Enter, in the editor";
      run.classList.add("course-run-main");
      end.classList.add("course-run-main");
      this.corner.append(edit, run, end);
      this.row.append(this.bar, this.status, reset, above, stored);
      const kept = course.typed.of(this.id);
      if (kept && kept.source !== this.source) {
        this.text = kept.source;
        this.outdated = course.typed.outdated(kept, this.source);
        this.colour();
      }
      this.update();
    }

    // A button in place of Run, behind which stands why there is none.
    refuse() {
      const button = element("button", "course-run-button", "Jupyter only");
      const why = element("span", "course-run-why", this.runs);
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      why.hidden = true;
      button.addEventListener("click", () => {
        why.hidden = !why.hidden;
        button.setAttribute("aria-expanded", String(!why.hidden));
      });
      this.corner.append(button);
      this.row.append(why);
    }

    update() {
      if (!this.buttons) return;
      const { run, edit, reset, stop: end, above, stored } = this.buttons;
      const busy = ["loads", "needs", "runs"].includes(this.state);
      run.setAttribute("aria-disabled", String(Boolean(this.state)));
      if (!run.classList.contains("course-button")) run.textContent = this.offer; // that is a check's
      edit.hidden = Boolean(this.editor);
      reset.hidden = !this.edited;
      const [there, gone] = busy ? [end, run] : [run, end]; // one takes the other's place, and its focus
      const focused = document.activeElement === gone;
      there.hidden = false;
      gone.hidden = true;
      if (focused) there.focus({ preventScroll: true });
      this.bar.hidden = this.state !== "loads";
      above.hidden = Boolean(this.state) || !this.misses;
      stored.hidden = Boolean(this.state) || !this.hasBoth;
      stored.textContent = this.showsStored ? "Output of this run" : "Stored output";
      stored.setAttribute("aria-label", `${stored.textContent} of cell ${this.number}`);
      this.say(this.state ? this.note : this.words());
      this.node.classList.toggle("course-edited", this.edited);
      this.node.classList.toggle("course-old", this.isOld);
      this.node.classList.toggle("course-runs", this.state === "runs");
      this.node.classList.toggle("course-waits", this.state === "waits");
    }

    // Says it in the row. A cell among the words is a link to its box.
    say(words) {
      const parts = [words].flat();
      const text = parts.map((one) => (typeof one === "string" ? one : "a cell above")).join("").replace(/(\d) s\b/g, "$1\u00a0s"); // no line ends between a number and its unit
      if (!this.status || this.status.textContent === text) return;
      if (parts.length === 1) this.status.textContent = text;
      else this.status.replaceChildren(...parts.map((one) => (typeof one === "string" ? one : one.link("a cell above"))));
    }

    link(words) {
      const made = element("a", "", words);
      made.href = `#cell-${this.id}`;
      made.addEventListener("click", (event) => {
        event.preventDefault();
        this.flash();
      });
      return made;
    }

    // Shows where it is: the page scrolls to it, and its box lights up for a moment.
    flash() {
      const folded = this.node.querySelector(":scope > details:not([open])");
      if (folded) folded.open = true;
      this.node.scrollIntoView({ block: "center" });
      this.node.classList.remove("course-flash");
      void this.node.offsetWidth; // so that it can begin again
      this.node.classList.add("course-flash");
      (this.editor ? this.editor.field : this.buttons.run).focus({ preventScroll: true });
    }

    // What there is to say of a cell that does nothing at the moment: what matters most, and no more.
    words() {
      const { result } = this;
      const answers = this.node.classList.contains("course-answer");
      if (this.note.length) return this.note;
      if (this.elsewhere) return "you typed something else into another tab: a reload brings it, typing here replaces it";
      if (this.outdated) return "the page’s code has changed since you typed this";
      if (this.edited && !course.typed.isKept) return "this browser keeps nothing: what you typed is gone when you leave";
      if (result && this.showsStored) return "this is the stored output";
      if (result && result.text !== this.text) return "not run since your last change";
      if (result && this.judges) return "";
      if (result && !this.ran) return "ran here, before Python started afresh";
      if (result && result.paused) return `stopped after ${took(result.seconds)}; run it again, and it goes on`;
      if (result && result.failed && !result.stopped) return "failed here";
      if (result) return `${result.stopped ? "stopped after" : "ran here in"} ${took(result.seconds)}`;
      return this.edited && !answers ? "edited, kept in this browser" : "";
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
          run: () => course.cells.ask(this),
          leave: () => this.leave(),
        });
        this.update();
      }
      if (focus) this.editor.field.focus();
    }

    hearOfAnother() {
      const kept = course.typed.of(this.id);
      const elsewhere = Boolean(kept) && kept.source !== this.text;
      if (elsewhere === this.elsewhere) return;
      this.elsewhere = elsewhere;
      this.update();
    }

    type(text) {
      this.text = text;
      this.elsewhere = false;
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
      this.box.classList.remove("course-listing", "course-failed");
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
      course.outputs.keep(this.outputs, output);
      if (!this.node) return;
      if (output.output_type === "clear") {
        this.outputs = [];
        this.clear();
        return;
      }
      if (!this.emptied) this.clear();
      add(this.output, output);
    }

    // heard(words): called each second with how long it has been running.
    async run(heard = null) {
      const { text } = this;
      this.state = "runs";
      this.note = "running …";
      this.misses = this.cut = this.emptied = false;
      this.outputs = [];
      if (this.node) void this.output;
      const start = performance.now();
      const whole = this.seconds ? ` of about ${this.seconds}` : "";
      const watch = setInterval(() => {
        const words = `running for ${Math.round((performance.now() - start) / 1000)} s${whole} …`;
        this.say(words);
        if (heard) heard(words);
      }, 1000);
      if (this.node) this.node.classList.add("course-dims");
      this.update();
      try {
        if (this.before) await this.before();
        const { seconds, failed, paused } = await course.python.run({ id: this.id, source: text, random: this.random }, (output) => this.put(output));
        this.fresh = null;
        this.ran = { text, at: ++clock, seconds, failed, paused };
        this.result = { ...this.ran, outputs: this.outputs, basis: this.needed.map((one) => one.text) };
        if (this.node && !this.emptied) this.clear();
        if (this.node) this.box.classList.toggle("course-failed", failed);
        const error = this.outputs.find((one) => one.output_type === "error");
        const [, name] = (error && error.ename === "NameError" && error.evalue.match(/'(\w+)'/)) || [];
        this.misses = Boolean(name) && course.cells.above(this).some((one) => one.stale && new RegExp(`\\b${name}\\b`).test(one.text));
        this.note = "";
        return !failed;
      } catch (error) {
        this.note = "stopped here";
        this.cut = true;
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
  };
})();
