// What is too wide for the page: a formula shrinks a little; all else scrolls in its box, with a fade at the edge behind
// which there is more, and can be reached with the Tab key, as axe-core and keyboards ask.
(function () {
  const FORMULAS = "main mjx-container[display='true']";
  const BOXES = `main :is(pre, .output, .pst-scrollable-table-container, .course-table, .course-map, .course-scrolls), ${FORMULAS}`;
  const DRAWINGS = "main :is(.course-figure > svg, .course-player .stage > svg)";
  const READABLE = 11; // pixels, of letters in a drawing
  const SMALLEST = 0.75; // of a formula's size

  function shrink(formula) {
    if (!("size" in formula.dataset)) formula.dataset.size = formula.style.fontSize;
    formula.style.fontSize = formula.dataset.size;
    const share = formula.clientWidth / formula.scrollWidth;
    if (share < 1 && share >= SMALLEST) {
      const size = parseFloat(getComputedStyle(formula).fontSize);
      formula.style.fontSize = `${Math.floor(size * share * 20) / 20 - 0.05}px`;
    }
  }

  function shrunk(drawing) {
    const box = drawing.parentElement;
    if (!drawing.style.minWidth && !box.dataset.ratio) return;
    drawing.style.minWidth = "";
    box.classList.remove("course-scrolls");
    if (box.dataset.ratio) Object.assign(box.style, { aspectRatio: box.dataset.ratio, minHeight: "" });
  }

  // On a phone a drawing keeps the width at which its smallest words can be read, and scrolls in its box.
  function legible(drawing) {
    const box = drawing.parentElement;
    const natural = drawing.viewBox.baseVal && drawing.viewBox.baseVal.width;
    const sizes = [...drawing.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize));
    if (!natural || !sizes.length) return;
    const least = Math.ceil((natural * READABLE) / Math.min(...sizes));
    if (drawing.getBoundingClientRect().width >= least) return;
    if (box.matches(".stage:not(.whole)")) { // its drawing changes, and its height is kept for the tallest
      box.style.minHeight = `${Math.ceil((box.clientHeight * least) / box.clientWidth)}px`;
      box.dataset.ratio = box.dataset.ratio || box.style.aspectRatio;
      box.style.aspectRatio = "auto";
      box.style.setProperty("--least", `${least}px`);
    } else drawing.style.minWidth = `${least}px`;
    box.classList.add("course-scrolls");
  }

  function edges(box) {
    const more = box.scrollWidth - box.clientWidth;
    box.dataset.cut = box.scrollLeft < 2 ? "right" : box.scrollLeft > more - 2 ? "left" : "both";
  }

  function mark(box) {
    const scrolls = box.scrollWidth > box.clientWidth + 1 && !["visible", "hidden"].includes(getComputedStyle(box).overflowX);
    if (scrolls) {
      if (!("cut" in box.dataset)) {
        box.addEventListener("scroll", () => "cut" in box.dataset && edges(box), { passive: true });
        if (box.tabIndex < 0) box.tabIndex = 0; // also where the theme has looked before the faces were there
      }
      edges(box);
    } else if ("cut" in box.dataset) {
      delete box.dataset.cut;
      box.removeAttribute("tabindex");
    }
  }

  function look() {
    document.querySelectorAll(FORMULAS).forEach(shrink);
    const drawings = document.querySelectorAll(DRAWINGS);
    drawings.forEach(shrunk);
    if (innerWidth < 576) drawings.forEach(legible);
    document.querySelectorAll(BOXES).forEach(mark);
  }

  window.addEventListener("load", () => {
    const typeset = window.MathJax && MathJax.startup && MathJax.startup.promise;
    Promise.resolve(typeset).then(look);
    let width = innerWidth;
    window.addEventListener("resize", () => {
      if (innerWidth !== width) look(); // not when a phone's address bar comes and goes
      width = innerWidth;
    });
    document.addEventListener("toggle", look, true); // what was folded had no width
    document.addEventListener("course-opened", look);
  });
})();
