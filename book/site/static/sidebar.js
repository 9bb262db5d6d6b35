// The sidebar folds by part: the part of the page is open, another one opens at a press. Without this script all are open.
(function () {
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".bd-links p.caption").forEach((caption, number) => {
      const list = caption.nextElementSibling;
      if (!list || list.tagName !== "UL") return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "course-fold";
      button.append(...caption.childNodes);
      caption.append(button);
      list.id = list.id || `course-part-${number}`;
      button.setAttribute("aria-controls", list.id);
      const fold = (open) => {
        list.hidden = !open;
        button.setAttribute("aria-expanded", String(open));
      };
      button.addEventListener("click", () => fold(list.hidden));
      fold(Boolean(list.querySelector(".current")) || (number === 0 && !document.querySelector(".bd-links .current")));
    });
  });
})();
