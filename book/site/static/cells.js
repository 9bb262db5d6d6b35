// Code cells: the listings that show() makes get their file's name as a caption, folded code says what it is the code of.
(function () {
  // Each line of a listing by itself, so that a long one can go on below, further in than it starts.
  function lines(pre) {
    const blank = pre.querySelector(":scope > span:empty");
    if (blank) blank.remove();
    pre.innerHTML = pre.innerHTML.replace(/\n$/, "").split("\n").map((line) => {
      const plain = document.createElement("span");
      plain.innerHTML = line;
      const indent = plain.textContent.search(/\S|$/);
      return `<span class="line" style="--indent: ${indent}ch">${line}\n</span>`;
    }).join("");
  }

  // On a phone code goes on below, and a comment with a shape that has no room gets a line of its own above it.
  function wrapped(pre) {
    const room = pre.clientWidth / parseFloat(getComputedStyle(pre).fontSize) / 0.6 - 3; // characters
    lines(pre);
    pre.querySelectorAll(".line").forEach((line) => {
      const comment = line.querySelector(":scope > .c1:last-of-type");
      if (!comment || line.textContent.trimEnd().length <= room || line.firstElementChild === comment) return;
      const before = comment.previousSibling;
      if (before && before.nodeType === Node.TEXT_NODE) before.textContent = before.textContent.trimEnd();
      const above = document.createElement("span");
      above.className = "line";
      above.style.setProperty("--indent", line.style.getPropertyValue("--indent"));
      above.append(" ".repeat(parseInt(line.style.getPropertyValue("--indent"), 10) || 0), comment, "\n");
      line.before(above);
    });
  }

  function listing(cell) {
    const from = cell.querySelector(".cell_output > p:first-child > em:only-child > code");
    const pre = cell.querySelector(".cell_output > p:first-child + div[class*='highlight-'] pre");
    if (!from || !pre || !from.parentElement.textContent.startsWith("From ")) return;
    const input = cell.querySelector(".cell_input");
    const call = input ? input.querySelector("pre").textContent.trim() : "";
    const caption = from.closest("p");
    caption.className = "course-listing-caption";
    caption.replaceChildren(...from.parentElement.querySelectorAll("a, code:not(a code)"));
    cell.querySelector(".cell_output").classList.add("course-listing");
    if (/^show\([^\n]*\)$/.test(call)) {
      const code = document.createElement("code");
      code.className = "literal";
      code.textContent = call;
      caption.append(code);
      input.hidden = true;
    }
    lines(pre);
  }

  function long(box) {
    if (box.textContent.split("\n").length > 40) box.classList.add("course-long"); // may break between two sheets
  }

  function folded(details) {
    const output = details.parentElement.querySelector(".cell_output");
    const setup = details.parentElement.matches(".tag_setup");
    const what = !output ? "code" : output.querySelector(".course-player, .course-map") ? "code of what moves"
      : output.querySelector("img, svg") ? "code of the figure" : output.querySelector(".course-table") ? "code of the table" : "code";
    const summary = details.querySelector("summary");
    details.classList.remove("admonition"); // the theme would make a box of it
    summary.querySelectorAll("p").forEach((text) => text.classList.remove("admonition-title"));
    summary.removeAttribute("aria-label"); // its text says it
    summary.querySelector(".collapsed").textContent = setup ? "Setup" : `Show the ${what}`;
    summary.querySelector(".expanded").textContent = setup ? "Setup" : `Hide the ${what}`;
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".cell").forEach(listing);
    document.querySelectorAll(".cell > details.above-input").forEach(folded);
    document.querySelectorAll(".cell_input, .cell_output").forEach(long);
    if (matchMedia("(max-width: 575.98px)").matches) document.querySelectorAll(".cell_input pre").forEach(wrapped);
  });

  // A cell that ran in the page (run/cells.js) may have put out a listing.
  document.addEventListener("course-output", ({ target }) => {
    listing(target);
    target.querySelectorAll(":scope > .cell_output").forEach(long);
  });
})();
