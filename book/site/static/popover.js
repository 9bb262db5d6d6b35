// What a term, a citation or an erratum says, beside its link: at the pointer, with the keyboard's focus, at a first touch
// (a second one follows the link). The words are the link's title.
(function () {
  const LINKS = "a:is(.course-term, .course-citation, .course-reference)[title]";
  const WAIT = 250; // ms under the pointer

  document.addEventListener("DOMContentLoaded", () => {
    const box = document.createElement("div");
    box.className = "course-popover";
    box.id = "course-popover";
    box.setAttribute("role", "tooltip");
    box.hidden = true;
    document.body.append(box);
    let shown = null;
    let timer = 0;

    document.querySelectorAll(LINKS).forEach((link) => {
      link.dataset.says = link.title;
      link.removeAttribute("title"); // the browser's own would come a second later
      link.setAttribute("aria-describedby", box.id);
    });

    function show(link) {
      clearTimeout(timer);
      shown = link;
      box.textContent = link.dataset.says;
      box.hidden = false;
      const at = link.getClientRects()[0];
      const room = document.documentElement.clientWidth - box.offsetWidth - 8;
      box.style.left = `${Math.max(8, Math.min(at.left, room)) + scrollX}px`;
      const below = at.bottom + box.offsetHeight + 12 < innerHeight;
      box.style.top = `${(below ? at.bottom + 6 : at.top - box.offsetHeight - 6) + scrollY}px`;
    }

    function hide() {
      clearTimeout(timer);
      shown = null;
      box.hidden = true;
    }

    const linkOf = (event) => (event.target.closest ? event.target.closest("a[data-says]") : null);

    document.addEventListener("pointerover", (event) => {
      const link = linkOf(event);
      if (event.pointerType !== "mouse" || !link) return;
      clearTimeout(timer);
      timer = setTimeout(() => show(link), WAIT);
    });
    document.addEventListener("pointerout", (event) => {
      if (event.pointerType === "mouse" && linkOf(event) && !box.contains(event.relatedTarget)) hide();
    });
    box.addEventListener("pointerleave", hide);
    document.addEventListener("focusin", (event) => {
      const link = linkOf(event);
      if (link && link.matches(":focus-visible")) show(link);
      else if (shown) hide();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && shown) hide();
    });
    let touched = false;
    document.addEventListener("pointerdown", (event) => { touched = event.pointerType === "touch"; });
    document.addEventListener("click", (event) => {
      const link = linkOf(event);
      if (link && touched && shown !== link) {
        event.preventDefault();
        show(link);
      } else if (!link && !box.contains(event.target)) hide();
    });
  });
})();
