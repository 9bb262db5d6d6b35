// What the reader has done, where it is listed: a tick at a chapter that was scrolled to its end (in the sidebar, on the
// map, in lists) and at exercises that were solved; where to go on, on the first page; and the way through the course that
// was chosen there, which greys the rest of the sidebar and says at a page's end where it goes on.
(function () {
  const hrefOf = (link) => link.getAttribute("href") || ""; // a link of an SVG has no pathname
  const stem = (link) => (hrefOf(link) === "#" ? course.page : hrefOf(link).split("#")[0].split("/").pop().replace(/\.html$/, ""));

  document.addEventListener("DOMContentLoaded", () => {
    const sidebar = [...document.querySelectorAll(".bd-links .course-chapter > a.reference")];
    const chapters = sidebar.map(stem);
    const listed = [...document.querySelectorAll("article.bd-article a.reference.internal")];
    const links = [...sidebar, ...listed.filter((link) => chapters.includes(stem(link)))];
    const boxes = [...document.querySelectorAll("article.bd-article .course-tower a")];
    const written = sidebar.map(stem);
    const here = course.page.replace(/^exercises\//, ""); // an exercise's page is its chapter's
    const first = course.page === "index";
    const start = document.querySelector(".course-door.start");
    const atFirst = start && [start.innerHTML, hrefOf(start)];

    const line = document.createElement("p");
    line.className = "course-memory";
    const place = document.querySelector(".sidebar-primary-items__end");
    if (place) place.append(line);

    // The exercises that are right: {"one_head": {right: ["attend"], of: 5}}. Ticks them where they are listed.
    function solved() {
      const kept = course.recall("exercises", {});
      const here = kept[course.page] || { right: [] };
      document.querySelectorAll(".course-exercises li[class*='course-check-']").forEach((item) => {
        const done = here.right.some((name) => item.classList.contains(`course-check-${name}`));
        item.querySelector("p").classList.toggle("course-read", done);
      });
      return Object.values(kept).reduce((sum, one) => sum + one.right.length, 0);
    }

    let forgotten = false;
    function forget() {
      const typed = course.names().some((name) => name.startsWith("code of "));
      if (!typed || confirm("This forgets the code that you typed on these pages, too.")) {
        forgotten = true;
        course.forget();
      }
    }

    const count = document.createTextNode("");
    function show() {
      line.replaceChildren(...(course.names().length ? [count, course.button("Forget it all", forget)] : []));
      const read = course.recall("read", []);
      links.forEach((link) => {
        const done = read.includes(stem(link)) && (first || link.closest(".bd-links"));
        link.classList.toggle("course-read", Boolean(done));
        if (done) link.title = "read";
        else link.removeAttribute("title");
      });
      boxes.forEach((box) => box.classList.toggle("read", read.includes(stem(box))));
      const done = written.filter((name) => read.includes(name)).length;
      const right = solved();
      const exercises = right ? ` ${right} ${right === 1 ? "exercise" : "exercises"} right.` : "";
      const route = showRoute();
      const onIt = route ? route.chapters.filter((name) => read.includes(name)).length : done;
      count.data = `${onIt} of ${route ? route.chapters.length : written.length} chapters ${route ? "on your way " : ""}read.${exercises} `;
      if (start) goOn();
    }

    // --- The way through the course -------------------------------------------------------------------------

    const choices = [...document.querySelectorAll("[data-route]")];
    choices.forEach((button) => {
      button.hidden = false;
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true" && button.dataset.route !== "all";
        course.keep("route", on ? { name: button.dataset.route, chapters: button.dataset.chapters.split(" ") } : undefined);
      });
    });

    function showRoute() {
      const route = course.recall("route", null);
      sidebar.forEach((link) => {
        link.parentElement.classList.toggle("course-aside", Boolean(route) && !route.chapters.includes(stem(link)));
      });
      choices.forEach((button) => {
        button.setAttribute("aria-pressed", String(route ? route.name === button.dataset.route : button.dataset.route === "all"));
      });
      way.hidden = !route || !written.includes(here);
      if (!way.hidden) sayTheWay(route);
      return route;
    }

    // Above the links to the neighbours, which are often not on it.
    const end = document.querySelector(".prev-next-footer");
    const way = document.createElement("p");
    way.className = "course-way";
    if (end) end.before(way);

    function sayTheWay(route) {
      const at = route.chapters.indexOf(here);
      const next = route.chapters[at + 1] || (at < 0 && route.chapters[0]);
      const link = sidebar.find((one) => stem(one) === next);
      way.textContent = at < 0 ? "This page is not on your way. " : `${at + 1} of ${route.chapters.length} on your way. `;
      if (!link) {
        way.append("It ends here.");
        return;
      }
      const on = document.createElement("a");
      on.href = link.href;
      on.textContent = link.textContent.trim();
      way.append(at < 0 ? "It begins with " : "Next: ", on, ".");
    }

    // --- Where to go on -------------------------------------------------------------------------------------

    // Its address is made of the course's own list: a link may be a script.
    function goOn() {
      const last = course.recall("last", null);
      const places = last ? ["book", "exercises"].flatMap((folder) => written.map((name) => [folder, name])) : [];
      const place = places.find(([folder, name]) => last.page === (folder === "book" ? name : `${folder}/${name}`));
      start.innerHTML = atFirst[0];
      start.setAttribute("href", atFirst[1]);
      if (!place) return;
      const address = new URL(`${document.documentElement.dataset.content_root}${place.join("/")}.html`, location.href);
      address.hash = last.hash;
      start.href = address;
      const words = [["b", "Continue"], ["span", last.heading ? `${last.title}: ${last.heading}` : last.title]];
      start.replaceChildren(...words.flatMap(([tag, text]) => {
        const word = document.createElement(tag);
        word.textContent = text;
        return [word, " "];
      }));
    }

    // Kept when the reader leaves a chapter or its exercises: the page, and the heading that was read.
    if (written.includes(here)) {
      const sections = [...document.querySelectorAll("article.bd-article section[id]")];
      const words = (heading) => (heading ? heading.textContent.replace(/[#¶]\s*$/, "").trim() : "");
      const leave = () => {
        if (forgotten) return;
        const read = sections.filter((one) => one.getBoundingClientRect().top < innerHeight / 3).pop();
        const inner = read && read !== sections[0] ? read : null;
        course.keep("last", {
          page: course.page,
          title: words(document.querySelector("article.bd-article h1")),
          hash: inner ? `#${inner.id}` : "",
          heading: inner ? words(inner.querySelector("h2, h3")) : "",
        });
      };
      document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") leave(); });
      window.addEventListener("pagehide", leave);
    }

    show();
    document.addEventListener("course-memory", show);

    if (!end || !written.includes(course.page)) return;
    new IntersectionObserver((seen, observer) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      const read = course.recall("read", []);
      if (!read.includes(course.page)) course.keep("read", [...read, course.page]);
    }).observe(end);
  });
})();
