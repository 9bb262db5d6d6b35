// The one place for what concerns the whole page's code: a menu in the bar above it.
(function () {
  const { element } = course.outputs;
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const SAYS = { none: "Python is not loaded yet.", loading: "Python is being loaded.", busy: "Python runs a cell.", ready: "Python is ready." };

  document.addEventListener("course-cells", () => {
    const bar = document.querySelector(".header-article-items__end") || document.querySelector(".header-article-items__start");
    if (!bar) return;
    const box = element("details", "course-python");
    const summary = element("summary", "", "Python");
    const panel = element("div", "course-python-panel");
    const state = element("p");
    const edits = element("p");
    state.setAttribute("role", "status");

    const button = (text, press) => {
      const made = course.button(text, press);
      panel.append(made);
      return made;
    };
    panel.append(state);
    button("Run all above", () => {
      const target = inView();
      box.open = false;
      if (target) course.cells.askAllAbove(target);
    }).title = "all cells above the place that you read, and the one there";
    const stop = button("Stop", course.cells.stop);
    button("Start Python afresh", course.cells.afresh);
    panel.append(edits);
    const reset = button("Reset page", () => {
      const edited = course.cells.list.filter((cell) => cell.buttons && cell.edited);
      const all = course.cells.list.filter((cell) => cell.buttons && (cell.edited || cell.result));
      if (edited.length && !confirm(`This forgets what you typed into ${plural(edited.length, "cell")}.`)) return;
      all.forEach((cell) => cell.reset());
    });
    button("Download as a notebook", async () => {
      try {
        await course.notebook();
      } catch (error) {
        state.textContent = `The page’s notebook could not be had: ${error.message}`;
      }
    });

    // The last cell that begins above the middle of the window.
    function inView() {
      return course.cells.list.filter((cell) => cell.buttons && cell.node.getBoundingClientRect().top < innerHeight / 2).pop();
    }

    function update() {
      state.textContent = SAYS[course.python.state];
      stop.hidden = !course.cells.working;
      const edited = course.cells.list.filter((cell) => cell.buttons && cell.edited).length;
      const lost = Object.keys(course.typed.all()).filter((id) => !course.cells.list.some((cell) => cell.id === id)).length;
      edits.textContent = [
        edited ? `${plural(edited, "cell")} edited${course.typed.isKept ? ", kept in this browser" : ""}.` : "",
        lost ? `What you typed into ${plural(lost, "cell")} has no place on the page any more; the download has it.` : "",
      ].join(" ").trim();
      edits.hidden = !edits.textContent;
      reset.hidden = !course.cells.list.some((cell) => cell.buttons && (cell.edited || cell.result));
      summary.textContent = edited ? `Python (${edited})` : "Python";
      summary.setAttribute("aria-label", edited ? `Python, ${plural(edited, "cell")} edited` : "Python");
    }

    box.append(summary, panel);
    bar.prepend(box);
    document.addEventListener("course-python", update);
    document.addEventListener("course-output", update);
    document.addEventListener("course-memory", update);
    document.addEventListener("click", (event) => {
      if (!box.contains(event.target)) box.open = false;
    });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      box.open = false;
      summary.focus();
    });
    update();
  });
})();
