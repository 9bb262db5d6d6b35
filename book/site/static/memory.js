// What the site remembers of its reader, in the browser alone: chapters read, predictions made, code typed, exercises
// solved. A browser may refuse to keep anything; then it is remembered until the page is left.
window.course = (function () {
  // Each name has its own place there: two tabs hear of one another late, and keep over nothing but what they change.
  const PLACE = "minigrad-course/";
  const refused = new Map();

  // What is kept may be of another version, or edited: what a name's value, or a part of it, is not made of is as if it were
  // not there. A part of a table or a list is left out by itself.
  const isTable = (one) => typeof one === "object" && one !== null && !Array.isArray(one);
  const there = (one) => one !== undefined;
  const a = (type) => (one) => (typeof one === type ? one : undefined);
  const [text, number, yes] = ["string", "number", "boolean"].map(a);
  const list = (of) => (one) => (Array.isArray(one) ? one.map(of).filter(there) : undefined);
  const table = (of) => (one) => (isTable(one) ? Object.fromEntries(Object.entries(one).map(([name, part]) => [name, of(part)]).filter(([, part]) => there(part))) : undefined);
  const record = (of) => (one) => {
    const made = isTable(one) && Object.entries(of).map(([name, part]) => [name, part(one[name])]);
    return made && made.every(([, part]) => there(part)) ? { ...one, ...Object.fromEntries(made) } : undefined;
  };
  const SHAPES = {
    read: list(text),
    exercises: table(record({ right: list(text) })),
    route: record({ name: text, chapters: list(text) }),
    last: record({ page: text, title: text, hash: text, heading: text }),
    python: record({ version: text, seconds: number }),
    predictions: table(yes),
    choices: table(number),
    answers: yes,
    code: table(record({ source: text, author: text })),
  };
  const known = (name) => Object.hasOwn(SHAPES, name.split(" of ")[0]);
  const shaped = (name, value) => (known(name) ? SHAPES[name.split(" of ")[0]](value) : undefined);

  function stored() {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(PLACE)).map((key) => key.slice(PLACE.length));
    } catch {
      return [];
    }
  }

  function changed() {
    document.dispatchEvent(new Event("course-memory"));
  }

  window.addEventListener("storage", (event) => {
    if (event.key === null || event.key.startsWith(PLACE)) changed();
  });

  return {
    page: DOCUMENTATION_OPTIONS.pagename.replace(/^book\//, ""), // one_head, exercises/one_head

    recall(name, otherwise) {
      if (refused.has(name)) return refused.get(name) ?? otherwise;
      try {
        return shaped(name, JSON.parse(localStorage.getItem(PLACE + name))) ?? otherwise;
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
