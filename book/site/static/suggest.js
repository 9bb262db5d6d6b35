// Titles while one types into the search: ten of them, chapters first; an arrow key goes there, Enter on one opens it. Enter
// in the field still searches the text.
(function () {
  const MOST = 10;

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("form.bd-search").forEach((form, number) => {
      const field = form.querySelector("input[type=search]");
      if (!field || form.closest(".bd-search-container")) return;
      const list = document.createElement("ul");
      list.className = "course-suggestions";
      list.id = `course-suggestions-${number}`;
      list.hidden = true;
      form.after(list);
      field.setAttribute("aria-controls", list.id);
      field.setAttribute("autocomplete", "off");
      let asked = false;

      field.addEventListener("focus", () => {
        if (asked || window.COURSE_TITLES) return;
        asked = true;
        const script = document.createElement("script");
        script.src = new URL("_static/search_titles.js", new URL(document.documentElement.dataset.content_root || "./", location.href));
        script.onload = suggest;
        document.head.append(script);
      });
      field.addEventListener("input", suggest);

      function suggest() {
        const words = field.value.toLowerCase().match(/[\p{L}\p{N}&]+/gu) || [];
        const fits = ([, title, of]) => {
          const text = `${title} ${of}`.toLowerCase();
          return words.every((word) => text.includes(word));
        };
        const whole = field.value.trim().toLowerCase();
        const value = ([, title, of]) => (title.toLowerCase().includes(whole) ? 2 : 0) + (of ? 0 : 1);
        const found = words.length && window.COURSE_TITLES ? window.COURSE_TITLES.filter(fits) : [];
        found.sort((a, b) => value(b) - value(a));
        list.replaceChildren(...found.slice(0, MOST).map(([address, title, of]) => {
          const item = document.createElement("li");
          const link = document.createElement("a");
          link.href = new URL(address, new URL(document.documentElement.dataset.content_root || "./", location.href));
          link.append(title);
          if (of) {
            const where = document.createElement("small");
            where.textContent = ` ${of}`;
            link.append(where);
          }
          item.append(link);
          return item;
        }));
        list.hidden = !found.length;
      }

      const move = (event) => {
        const all = [field, ...list.querySelectorAll("a")];
        const to = all.indexOf(document.activeElement) + { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!(to >= 0) || list.hidden || !all[to]) return;
        event.preventDefault();
        event.stopPropagation();
        all[to].focus();
      };
      field.addEventListener("keydown", move);
      list.addEventListener("keydown", move);
    });
  });
})();
