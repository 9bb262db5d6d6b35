// What answers to the reader has an address that shows it alone, for slides and other pages: ?alone=… with the id of its
// cell, `model` or `game`; &theme=light or dark fixes the colours. Under each of them stands how to put it elsewhere.
(function () {
  const ASKED = { model: ".course-ask:not(.short)", game: ".course-beat" };
  const LEAST = { game: 520 }; // pixels of height that it will need
  const words = new URLSearchParams(location.search);

  function made(tag, name, ...children) {
    const element = document.createElement(tag);
    element.className = name;
    element.append(...children);
    return element;
  }

  // Name and box of all that can stand alone: the outputs with a script of their own, and the two of "Ask the model".
  function boxes() {
    const found = [...document.querySelectorAll(".cell[data-cell] > .cell_output")].filter((box) => box.querySelector("script"));
    const cells = found.map((box) => [box.parentElement.dataset.cell, box]);
    const others = Object.entries(ASKED).map(([name, selector]) => [name, document.querySelector(selector)]);
    return [...cells, ...others.filter(([, box]) => box)];
  }

  const title = () => document.querySelector("h1").firstChild.textContent.trim();

  function alone(box) {
    const back = made("a", "", `${title()}: ${document.querySelector(".navbar-brand .title, .logo__title")?.textContent.trim() || "the course"}`);
    back.href = location.pathname;
    back.target = "_top";
    box.classList.remove("course-asked");
    document.documentElement.classList.add("course-alone");
    document.body.append(made("main", "bd-article", box, made("p", "course-from", back)));
    colour();
    window.addEventListener("load", colour); // the theme's own script has chosen meanwhile
    document.dispatchEvent(new Event("course-opened")); // its room is another one
  }

  function colour() {
    const theme = words.get("theme");
    if (["light", "dark"].includes(theme)) document.documentElement.dataset.theme = theme;
  }

  function share(name, box) {
    if (box.querySelector(":scope > .course-embed") || box.nextElementSibling?.matches(".course-embed")) return;
    const address = () => new URL(`${location.pathname}?alone=${name}${name === "model" ? location.hash : ""}`, location.href).href;
    const link = made("a", "", "Open it on a page of its own");
    const line = made("input", "");
    const copy = course.button("Copy", async () => {
      try {
        await navigator.clipboard.writeText(line.value);
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 1500);
      } catch {
        line.select(); // then the keyboard copies it
      }
    });
    const panel = made("details", "course-embed", made("summary", "", "Embed"), link, line, copy);
    line.readOnly = true;
    line.setAttribute("aria-label", "The line of HTML that embeds it");
    panel.addEventListener("toggle", () => {
      link.href = address();
      line.value = `<iframe src="${address().replaceAll("&", "&amp;")}" title="${title().replaceAll('"', "&quot;")}" width="100%" height="${Math.max(box.offsetHeight, LEAST[name] || 0) + 60}" style="border: 0" loading="lazy"></iframe>`;
    });
    if (name in ASKED) box.after(panel);
    else box.append(panel);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const asked = boxes().find(([name]) => name === words.get("alone"));
    if (asked) return alone(asked[1]);
    if (location.protocol === "file:") return; // no address for others
    const all = () => boxes().forEach(([name, box]) => share(name, box));
    all();
    document.addEventListener("course-output", all); // a cell that ran has a new one
  });
})();
