// The code that the reader typed, cell by cell, kept in the browser until it is reset. Beside it stands a mark of the
// author's text at that time, so that the page can say when that has changed since.
course.typed = (function () {
  const NAME = `code of ${course.page}`;
  const WAIT = 300; // milliseconds after the last key
  const waiting = new Map(); // id: what is to be kept
  let timer = 0;
  let kept = true;

  const all = () => course.recall(NAME, {});

  // A short text that is another one for another source (FNV-1a, 32 bits).
  function mark(source) {
    let sum = 0x811c9dc5;
    for (const letter of source) sum = Math.imul(sum ^ letter.codePointAt(0), 0x01000193);
    return (sum >>> 0).toString(16);
  }

  function write() {
    clearTimeout(timer);
    if (!waiting.size) return;
    const now = { ...all() };
    waiting.forEach((entry, id) => {
      if (entry) now[id] = entry;
      else delete now[id];
    });
    waiting.clear();
    kept = course.keep(NAME, Object.keys(now).length ? now : undefined);
  }

  function later(id, entry) {
    waiting.set(id, entry);
    clearTimeout(timer);
    timer = setTimeout(write, WAIT);
  }

  window.addEventListener("pagehide", write);
  document.addEventListener("visibilitychange", () => document.hidden && write());

  return {
    all,
    write,

    // What was typed into a cell, or nothing; and whether the page's own text was another one then.
    of: (id) => (waiting.has(id) ? waiting.get(id) : all()[id]) || null,
    outdated: (entry, author) => entry.author !== mark(author),

    keep: (id, source, author) => later(id, { source, author: mark(author) }),
    drop: (id) => later(id, null),

    // Whether the browser keeps it beyond this page.
    get isKept() {
      return kept;
    },
  };
})();
