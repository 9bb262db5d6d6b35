// An editor for a code box: a text field, transparent, exactly over the coloured code, with the numbers of the lines in its
// margin. The browser does the rest: the caret, undoing, a phone's keyboard. The Tab key indents; Escape leaves the editor, so that the keyboard gets out.
course.editor = (function () {
  const INDENT = "    ";

  // Put a text where the selection is, so that the browser can undo it.
  function insert(field, text) {
    if (!document.execCommand("insertText", false, text)) {
      field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
      field.dispatchEvent(new Event("input"));
    }
  }

  // The lines that the selection touches: where they start, where they end.
  function lines(field) {
    const text = field.value;
    const start = text.lastIndexOf("\n", field.selectionStart - 1) + 1;
    const last = field.selectionEnd > field.selectionStart && text[field.selectionEnd - 1] === "\n" ? 1 : 0;
    const end = text.indexOf("\n", field.selectionEnd - last);
    return [start, end < 0 ? text.length : end];
  }

  function changeLines(field, change) {
    const [start, end] = lines(field);
    const before = field.value.slice(start, end);
    const after = before.split("\n").map(change).join("\n");
    if (after === before) return;
    const one = field.selectionStart === field.selectionEnd;
    const place = field.selectionStart + after.length - before.length;
    field.setSelectionRange(start, end);
    insert(field, after);
    if (one) field.setSelectionRange(Math.max(place, start), Math.max(place, start));
    else field.setSelectionRange(start, start + after.length);
  }

  const more = (line) => (line.trim() ? INDENT + line : line);
  const less = (line) => line.replace(/^ {1,4}/, "");

  function comment(field) {
    const [start, end] = lines(field);
    const code = field.value.slice(start, end).split("\n").filter((line) => line.trim());
    const commented = code.length && code.every((line) => /^\s*#/.test(line));
    const column = Math.min(...code.map((line) => line.search(/\S/)));
    changeLines(field, (line) => {
      if (!line.trim()) return line;
      return commented ? line.replace(/^(\s*)# ?/, "$1") : `${line.slice(0, column)}# ${line.slice(column)}`;
    });
  }

  // A new line starts below the one above: further in after a colon, further out after a return.
  function newLine(field) {
    const [start] = lines(field);
    const line = field.value.slice(start, field.selectionStart);
    let indent = line.match(/^ */)[0];
    if (/:\s*(#.*)?$/.test(line)) indent += INDENT;
    else if (/^\s*(return|pass|break|continue|raise)\b/.test(line)) indent = indent.slice(INDENT.length);
    insert(field, `\n${indent}`);
  }

  function tab(field) {
    if (field.selectionStart !== field.selectionEnd) return changeLines(field, more);
    const column = field.selectionStart - lines(field)[0];
    insert(field, " ".repeat(INDENT.length - (column % INDENT.length)));
  }

  // In front of a line's first letter, Backspace takes one step of indentation.
  function back(field) {
    const [start] = lines(field);
    const before = field.value.slice(start, field.selectionStart);
    if (field.selectionStart !== field.selectionEnd || !before || before.trim()) return false;
    const step = ((before.length - 1) % INDENT.length) + 1;
    field.setSelectionRange(field.selectionStart - step, field.selectionStart);
    document.execCommand("delete");
    return true;
  }

  // Opens an editor on `pre`. does: input(text), run(), leave(), what the keys do.
  return function open(pre, text, name, does) {
    const box = document.createElement("div");
    const field = document.createElement("textarea");
    box.className = "course-editor";
    field.value = text;
    field.rows = 1; // the code below says how high it is
    field.spellcheck = false;
    field.wrap = "off";
    field.setAttribute("aria-label", name);
    field.setAttribute("aria-description", "Shift and Enter run the cell, Escape leaves the editor");
    for (const one of ["autocapitalize", "autocomplete", "autocorrect"]) field.setAttribute(one, "off");
    const numbers = document.createElement("div");
    numbers.className = "course-line-numbers";
    numbers.setAttribute("aria-hidden", "true");
    pre.before(box);
    box.append(pre, field, numbers);
    pre.removeAttribute("tabindex"); // boxes.js gave it one if it scrolls: now the field is what has the focus
    pre.setAttribute("aria-hidden", "true"); // the field says it
    delete pre.dataset.cut;

    function colour() {
      pre.innerHTML = `${course.highlight(field.value)}\n`;
      const lines = field.value.split("\n").length;
      if (numbers.childElementCount !== lines) {
        numbers.replaceChildren(...Array.from({ length: lines }, (_, i) => course.outputs.element("span", "", String(i + 1))));
      }
    }

    // The same letters in the same places, whatever the window's width makes of the code.
    function fit() {
      const style = getComputedStyle(pre);
      for (const one of ["fontFamily", "fontSize", "lineHeight", "letterSpacing", "tabSize", "padding"]) field.style[one] = style[one];
      for (const one of ["lineHeight", "paddingTop"]) numbers.style[one] = style[one];
    }

    field.addEventListener("input", () => {
      colour();
      does.input(field.value);
    });
    field.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      const ctrl = event.ctrlKey || event.metaKey;
      if (event.key === "Enter" && (event.shiftKey || ctrl)) does.run();
      else if (event.key === "Escape") does.leave();
      else if (event.altKey) return;
      else if (ctrl && event.key === "/") comment(field);
      else if (ctrl) return;
      else if (event.key === "Enter") newLine(field);
      else if (event.key === "Tab" && event.shiftKey) changeLines(field, less);
      else if (event.key === "Tab") tab(field);
      else if (event.key !== "Backspace" || !back(field)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    window.addEventListener("resize", fit);
    fit();
    colour();

    return {
      field,
      set(value) {
        field.value = value;
        colour();
      },
      close() {
        window.removeEventListener("resize", fit);
        pre.removeAttribute("aria-hidden");
        box.replaceWith(pre);
      },
    };
  };
})();
