// A chapter that was scrolled to its end counts as read: a tick in the sidebar and on the first page's list. So do
// exercises that were solved on the site: a tick in their chapter's list, and their number on the first page.
(function () {
  const stem = (link) => link.pathname.split("/").pop().replace(/\.html$/, "");

  document.addEventListener("DOMContentLoaded", () => {
    const sidebar = [...document.querySelectorAll(".bd-links .course-chapter > a.reference")];
    const chapters = sidebar.map(stem);
    const listed = [...document.querySelectorAll("article.bd-article a.reference.internal")];
    const links = [...sidebar, ...listed.filter((link) => chapters.includes(stem(link)))];
    const written = sidebar.filter((link) => !link.closest(".planned")).map(stem);

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
      if (course.page === "index") {
        links.filter((link) => !link.closest(".bd-links")).forEach((link) => {
          const { right, of } = kept[stem(link)] || { right: [] };
          if (right.length) link.dataset.solved = `(${right.length} of ${of} exercises right)`;
          else delete link.dataset.solved;
        });
      }
      return Object.values(kept).reduce((sum, one) => sum + one.right.length, 0);
    }

    function forget() {
      const typed = course.names().some((name) => name.startsWith("code of "));
      if (!typed || confirm("This forgets the code that you typed on these pages, too.")) course.forget();
    }

    function show() {
      const read = course.recall("read", []);
      links.forEach((link) => {
        const done = read.includes(stem(link)) && (course.page === "index" || link.closest(".bd-links"));
        link.classList.toggle("course-read", Boolean(done));
        if (done) link.title = "read";
        else link.removeAttribute("title");
      });
      const done = written.filter((name) => read.includes(name)).length;
      const right = solved();
      line.replaceChildren();
      if (done || course.some()) {
        const exercises = right ? ` ${right} ${right === 1 ? "exercise" : "exercises"} right.` : "";
        line.append(`${done} of ${written.length} chapters read.${exercises} `, course.button("Forget it all", forget));
      }
    }
    show();
    document.addEventListener("course-memory", show);

    const end = document.querySelector(".prev-next-footer");
    if (!end || !written.includes(course.page)) return;
    new IntersectionObserver((seen, observer) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      const read = course.recall("read", []);
      if (!read.includes(course.page)) course.keep("read", [...read, course.page]);
    }).observe(end);
  });
})();
