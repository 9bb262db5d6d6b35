// The arrow keys turn the page, unless something has the focus that uses them itself: a slider, a map, a box that scrolls.
document.addEventListener("keydown", (event) => {
  const way = { ArrowLeft: "a.left-prev", ArrowRight: "a.right-next" }[event.key];
  if (!way || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (document.activeElement && !document.activeElement.matches("body, main, a")) return;
  const link = document.querySelector(way);
  if (link) location.assign(link.href);
});
