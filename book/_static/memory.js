// What the site remembers of its reader, in the browser alone: chapters read, predictions made, code typed, exercises
// solved. A browser may refuse to keep anything; then it is remembered until the page is left.
window.course = (function () {
  const NAME = "minigrad-course";
  let memory = {};
  read();

  // What is kept now: another tab may have kept something since this page was opened.
  function read() {
    try {
      memory = renamed(JSON.parse(localStorage.getItem(NAME)) || {});
    } catch {
      // refused, or damaged: `memory` stays what it is
    }
  }

  // What was kept when pages had numbers in their names, "code of exercises/07_one_head", by the names of today.
  function renamed(kept) {
    const today = (name) => name.replace(/(^|[ /])\d\d[a-h]?_(?=[a-z])/, "$1");
    const entries = (one) => Object.fromEntries(Object.entries(one).map(([name, value]) => [today(name), value]));
    const now = { ...entries(kept), ...kept };
    for (const name of Object.keys(kept)) if (today(name) !== name) delete now[name];
    if (now.read) now.read = [...new Set(now.read.map(today))];
    if (now.exercises) now.exercises = entries(now.exercises);
    return now;
  }

  function changed() {
    document.dispatchEvent(new Event("course-memory"));
  }

  window.addEventListener("storage", (event) => {
    if (event.key !== NAME && event.key !== null) return;
    if (event.newValue === null) memory = {};
    else read();
    changed();
  });

  return {
    page: DOCUMENTATION_OPTIONS.pagename.replace(/^book\//, ""), // one_head, exercises/one_head

    recall(name, otherwise) {
      return name in memory ? memory[name] : otherwise;
    },

    names() {
      return Object.keys(memory);
    },

    // Returns whether it outlives the page; undefined forgets what has the name.
    keep(name, value) {
      let kept = true;
      read();
      if (value === undefined) delete memory[name];
      else memory[name] = value;
      try {
        localStorage.setItem(NAME, JSON.stringify(memory));
      } catch {
        kept = false; // refused: `memory` has it
      }
      changed();
      return kept;
    },

    forget() {
      memory = {};
      try {
        localStorage.removeItem(NAME);
      } catch {
        // refused: nothing was kept
      }
      changed();
    },

    button(text, press) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "course-button";
      button.textContent = text;
      button.addEventListener("click", press);
      return button;
    },
  };
})();
