// The page's contents: in the bar above where the column on the right has no room, and in both a mark at the section
// that is being read.
(function () {
  document.addEventListener("DOMContentLoaded", () => {
    document.body.removeAttribute("data-bs-spy"); // the theme's own mark is lost in sections longer than the window
    const list = document.querySelector(".bd-toc-nav ul");
    const bar = document.querySelector(".header-article-items__start");
    if (!list || !bar) return;

    const box = document.createElement("details");
    box.className = "course-contents";
    const summary = document.createElement("summary");
    const nav = document.createElement("nav");
    nav.setAttribute("aria-label", "Contents of this page");
    nav.append(list.cloneNode(true));
    box.append(summary, nav);
    bar.append(box);

    nav.addEventListener("click", (event) => {
      if (event.target.closest("a")) box.open = false;
    });
    document.addEventListener("click", (event) => {
      if (!box.contains(event.target)) box.open = false;
    });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      box.open = false;
      summary.focus();
    });

    const links = [...document.querySelectorAll(".bd-toc-nav a, .course-contents nav a")];
    const headings = [...new Set(links.map((link) => link.hash))]
      .map((hash) => document.getElementById(decodeURIComponent(hash.slice(1)))).filter(Boolean);

    function mark() {
      const height = innerHeight / 3;
      const read = headings.filter((heading) => heading.getBoundingClientRect().top < height).pop();
      summary.textContent = "Contents";
      links.forEach((link) => {
        const here = read && decodeURIComponent(link.hash.slice(1)) === read.id;
        link.classList.toggle("active", Boolean(here));
        if (here) {
          link.setAttribute("aria-current", "true");
          summary.textContent = link.textContent.trim();
        } else link.removeAttribute("aria-current");
      });
    }

    let waiting = false;
    window.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        mark();
      });
    }, { passive: true });
    mark();
  });
})();
