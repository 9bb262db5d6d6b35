// A box that scrolls sideways can be reached with the Tab key, as axe-core and keyboards ask.
(function () {
  const boxes = ".pst-scrollable-table-container, mjx-container[display='true'], div.math, .course-map, .output, pre";
  function mark() {
    document.querySelectorAll(boxes).forEach((box) => {
      const scrolls = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
      if (scrolls && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.dataset.scrolls = "";
      } else if (!scrolls && "scrolls" in box.dataset) {
        box.removeAttribute("tabindex");
        delete box.dataset.scrolls;
      }
    });
  }
  window.addEventListener("load", () => {
    const typeset = window.MathJax && MathJax.startup && MathJax.startup.promise;
    Promise.resolve(typeset).then(mark);
    window.addEventListener("resize", mark);
  });
})();
