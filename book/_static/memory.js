// What the site remembers of its reader, in the browser alone: chapters read, predictions made.
// A browser may refuse to keep anything; then it is remembered until the page is left.
window.course = (function () {
  const NAME = "minigrad-course";
  let memory = {};
  try {
    memory = JSON.parse(localStorage.getItem(NAME)) || {};
  } catch {
    memory = {};
  }

  function changed() {
    document.dispatchEvent(new Event("course-memory"));
  }

  return {
    page: location.pathname.split("/").pop().replace(/\.html$/, ""),

    recall(name, otherwise) {
      return name in memory ? memory[name] : otherwise;
    },

    some() {
      return Object.keys(memory).length > 0;
    },

    keep(name, value) {
      memory[name] = value;
      try {
        localStorage.setItem(NAME, JSON.stringify(memory));
      } catch {
        // refused: `memory` has it
      }
      changed();
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
