// What the site remembers of its reader, in the browser alone: chapters read, predictions made, code typed, exercises
// solved. A browser may refuse to keep anything; then it is remembered until the page is left.
window.course = (function () {
  // Each name has its own place there: two tabs hear of one another late, and keep over nothing but what they change.
  const PLACE = "minigrad-course/";
  const refused = new Map();
  move();

  // What was kept before names had places of their own, all in one, and before pages lost the numbers in their names:
  // "code of exercises/07_one_head".
  function move() {
    try {
      const kept = JSON.parse(localStorage.getItem("minigrad-course"));
      for (const [name, value] of Object.entries(renamed(kept || {}))) {
        if (localStorage.getItem(PLACE + name) === null) localStorage.setItem(PLACE + name, JSON.stringify(value));
      }
      localStorage.removeItem("minigrad-course");
    } catch {
      // refused, or damaged: nothing to move
    }
  }

  function renamed(kept) {
    const today = (name) => name.replace(/(^|[ /])\d\d[a-h]?_(?=[a-z])/, "$1");
    const entries = (one) => Object.fromEntries(Object.entries(one).map(([name, value]) => [today(name), value]));
    const now = { ...entries(kept), ...kept };
    for (const name of Object.keys(kept)) if (today(name) !== name) delete now[name];
    if (now.read) now.read = [...new Set(now.read.map(today))];
    if (now.exercises) now.exercises = entries(now.exercises);
    return now;
  }

  function stored() {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(PLACE)).map((key) => key.slice(PLACE.length));
    } catch {
      return [];
    }
  }

  // What the page's head says in the element with an id.
  function said(id, what) {
    return document.getElementById(id)?.[what];
  }

  function changed() {
    document.dispatchEvent(new Event("course-memory"));
  }

  window.addEventListener("storage", (event) => {
    if (event.key === null || event.key.startsWith(PLACE)) changed();
  });

  return {
    page: (said("course-page", "content") ?? DOCUMENTATION_OPTIONS.pagename).replace(/^book\//, ""), // one_head, exercises/one_head
    words: JSON.parse(said("course-words", "textContent") ?? "{}"), // of a page in another language, by the English ones

    recall(name, otherwise) {
      if (refused.has(name)) return refused.get(name) ?? otherwise;
      try {
        return JSON.parse(localStorage.getItem(PLACE + name)) ?? otherwise;
      } catch {
        return otherwise; // refused, or damaged
      }
    },

    names() {
      const kept = stored().filter((name) => !refused.has(name));
      return [...kept, ...[...refused].filter(([, value]) => value !== undefined).map(([name]) => name)];
    },

    // Returns whether it outlives the page; undefined forgets what has the name.
    keep(name, value) {
      let kept = true;
      try {
        if (value === undefined) localStorage.removeItem(PLACE + name);
        else localStorage.setItem(PLACE + name, JSON.stringify(value));
        refused.delete(name);
      } catch {
        kept = false;
        refused.set(name, value);
      }
      changed();
      return kept;
    },

    forget() {
      refused.clear();
      stored().forEach((name) => localStorage.removeItem(PLACE + name));
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
