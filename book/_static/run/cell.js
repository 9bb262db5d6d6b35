// One cell of the page: its row of buttons (Run, Edit, Reset, Stop), its code, and what it puts out. The author's text and
// the stored output can always be had back. Which cell runs when is the business of cells.js.
course.Cell = (function () {
  const { element, add } = course.outputs;
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
      this.note = ""; // what goes before all else in the row
      this.before = null; // what is to be done before it runs
      this.pre = node && node.querySelector(".cell_input:not([hidden]) pre");
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

    // How long a run takes where the course was checked, with the cells that have to run first; 0 if that is not long.
    get expected() {
      return [this, ...this.needed.filter((one) => one.stale)].reduce((sum, one) => sum + one.seconds, 0);
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
        run: button("Run", () => course.cells.ask(this)),
        edit: button("Edit", () => this.edit()),
        reset: button("Reset", () => this.reset()),
        stop: button("Stop", course.cells.stop),
        above: button("Run all above first", () => course.cells.askAllAbove(this)),
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

    say(words) {
      const text = words.replace(/(\d) s\b/g, "$1\u00a0s"); // no line ends between a number and its unit
      if (this.status && this.status.textContent !== text) this.status.textContent = text;
    }

    // What there is to say of a cell that does nothing at the moment.
    words() {
      const said = this.note ? [this.note] : [];
      const { result } = this;
      if (result && !this.showsStored) {
        const verb = result.stopped ? "stopped after" : result.failed ? "failed here, after" : "run here, in";
        said.push(`${verb} ${took(result.seconds)}${result.text === this.text ? "" : ", before your last change"}`);
      } else if (result) said.push("this is the stored output");
      if (!result && this.expected) said.push(`about ${this.expected} s${this.expected > this.seconds ? ", with the cells above that this one needs" : ""}`);
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
          run: () => course.cells.ask(this),
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

    async run() {
      const { text } = this;
      this.state = "runs";
      this.note = "runs …";
      this.misses = false;
      this.emptied = false;
      this.outputs = [];
      if (this.node) void this.output;
      const start = performance.now();
      const whole = this.seconds ? ` of about ${this.seconds}` : "";
      const watch = setInterval(() => this.say(`runs, for ${Math.round((performance.now() - start) / 1000)} s${whole} …`), 1000);
      if (this.node) this.node.classList.add("course-dims");
      this.update();
      try {
        if (this.before) await this.before();
        const { seconds, failed } = await course.python.run({ id: this.id, source: text, random: this.random }, (output) => this.put(output));
        this.fresh = null;
        this.ran = { text, at: ++clock, seconds, failed };
        this.result = { ...this.ran, outputs: this.outputs };
        if (this.node && !this.emptied) this.clear();
        const error = this.outputs.find((one) => one.output_type === "error");
        this.misses = Boolean(error && error.ename === "NameError" && course.cells.above(this).some((one) => one.stale));
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
  };
})();
