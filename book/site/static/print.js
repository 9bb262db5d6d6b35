// On paper the page is light, whatever it is on the screen, and nothing is folded.
(function () {
  let before = null;

  function ready() {
    if (before) return;
    const root = document.documentElement;
    before = { theme: root.dataset.theme, folded: [...document.querySelectorAll("article details:not([open])")] };
    root.dataset.theme = "light";
    before.folded.forEach((details) => { details.open = true; });
  }

  function back() {
    if (!before) return;
    document.documentElement.dataset.theme = before.theme;
    before.folded.forEach((details) => { details.open = false; });
    before = null;
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".course-print").forEach((button) => {
      button.hidden = false;
      button.title = "Print this page, or save it as PDF";
      button.addEventListener("click", () => window.print());
    });
  });
  window.addEventListener("beforeprint", ready);
  window.addEventListener("afterprint", back);
  matchMedia("print").addEventListener("change", (media) => (media.matches ? ready() : back()));
})();
