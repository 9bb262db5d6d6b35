// A chapter that was scrolled to its end counts as read: a tick in the sidebar and on the first page's list.
(function () {
  const CHAPTER = /^\d\d[a-z]?_\w+$/;
  const stem = (link) => link.pathname.split("/").pop().replace(/\.html$/, "");

  document.addEventListener("DOMContentLoaded", () => {
    const sidebar = [...document.querySelectorAll(".bd-links a.reference")];
    const links = [...sidebar, ...document.querySelectorAll("article.bd-article a.reference.internal")]
      .filter((link) => CHAPTER.test(stem(link)));
    const written = sidebar.filter((link) => CHAPTER.test(stem(link)) && !link.closest(".planned")).map(stem);

    const line = document.createElement("p");
    line.className = "course-memory";
    const place = document.querySelector(".sidebar-primary-items__end");
    if (place) place.append(line);

    function show() {
      const read = course.recall("read", []);
      links.forEach((link) => {
        const done = read.includes(stem(link)) && (course.page === "index" || link.closest(".bd-links"));
        link.classList.toggle("course-read", Boolean(done));
        if (done) link.title = "read";
        else link.removeAttribute("title");
      });
      const done = written.filter((name) => read.includes(name)).length;
      line.replaceChildren();
      if (done || course.some()) {
        line.append(`${done} of ${written.length} chapters read. `, course.button("Forget it all", course.forget));
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
