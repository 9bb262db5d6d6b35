// The pages of exercises: the answers are open editors, a check is a button, and what is right is remembered.
(function () {
  const CHECK = /^check\.(?!progress\b)(\w+)\(/m;
  if (!course.page.startsWith("exercises/")) return;
  const chapter = course.page.split("/").pop();

  const checkOf = (cell) => (cell.source.match(CHECK) || [])[1];
  const isAnswer = (cell) => /^\s*\.\.\.\s*$/m.test(cell.source);

  function all() {
    return [...new Set(course.cells.list.map(checkOf).filter(Boolean))];
  }

  function right() {
    return (course.recall("exercises", {})[chapter] || { right: [] }).right;
  }

  // What a check says is HTML for people; its class is the verdict.
  function judge(cell) {
    const name = checkOf(cell);
    if (!name || !cell.output.querySelector(".course-check.is-right") || right().includes(name)) return;
    course.keep("exercises", { ...course.recall("exercises", {}), [chapter]: { right: [...right(), name], of: all().length } });
  }

  // Where to go after a right answer, as links: the page knows what was right before it was loaded, too.
  function onward(cell) {
    const line = cell.output.querySelector(".course-check.is-right > p:last-child");
    if (!line) return;
    const checks = course.cells.list.filter((one) => one.buttons && checkOf(one));
    const open = checks.filter((one) => !right().includes(checkOf(one)));
    const next = open.find((one) => one.number > cell.number);
    const link = (one) => {
      const section = one.node.closest("section");
      const made = document.createElement("a");
      made.href = `#${section.id}`;
      made.textContent = section.querySelector("h2, h1").firstChild.textContent.trim();
      return made;
    };
    if (next) line.replaceChildren("Next: ", link(next));
    else if (open.length) line.replaceChildren("Still open on this page: ", ...open.flatMap((one, i) => (i ? [", ", link(one)] : [link(one)])));
    else line.replaceChildren("All exercises of this page are right.");
  }

  function answer(cell) {
    cell.node.classList.add("course-answer");
    cell.edit(false);
    const label = cell.editor.field;
    const heading = cell.node.closest("section").querySelector("h2, h1");
    if (heading) label.setAttribute("aria-label", `Your answer to ${heading.firstChild.textContent.trim()}`);
  }

  function check(cell) {
    const call = cell.source.trim();
    const { run, edit, stop, stored } = cell.buttons;
    cell.node.classList.add("course-checks");
    cell.judges = true;
    run.textContent = "Check";
    run.classList.add("course-button");
    run.setAttribute("aria-label", `Check ${checkOf(cell)}`);
    if (call.includes("\n")) return;
    cell.node.querySelector(".cell_input").hidden = true; // the button says it
    cell.row.prepend(run, stop);
    edit.remove();
    stored.remove();
  }

  document.addEventListener("course-cells", () => {
    for (const cell of course.cells.list.filter((one) => one.buttons)) {
      if (isAnswer(cell)) answer(cell);
      else if (checkOf(cell)) check(cell);
    }
    const line = document.createElement("p");
    line.className = "course-solved";
    line.setAttribute("role", "status");
    const facts = document.querySelector(".course-back");
    if (facts) facts.append(line);

    function show() {
      const done = right();
      line.textContent = done.length ? `${done.length} of ${all().length} right, as this browser remembers.` : "";
      for (const cell of course.cells.list.filter((one) => one.buttons && checkOf(one))) {
        cell.node.classList.toggle("course-right", done.includes(checkOf(cell)));
      }
    }
    show();
    document.addEventListener("course-memory", show);
    document.addEventListener("course-output", ({ detail }) => {
      judge(detail);
      if (checkOf(detail)) onward(detail);
    });
    document.addEventListener("course-python", () => course.cells.list.forEach((one) => one.judges && one.update())); // an answer was typed
  });
})();
