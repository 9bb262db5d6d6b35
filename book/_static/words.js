// A page in another language: what scripts and players write in English is replaced as soon as it is there, by what the
// page's list of words says. A {} of a word is anything, which is looked up too.
(function () {
  const NAMES = ["aria-label", "title", "placeholder"];
  const CODE = "pre, code, textarea, script, style, [contenteditable], [lang=en]";
  const withPlaces = Object.entries(course.words).filter(([english]) => english.includes("{}"));
  const before = (text) => text.indexOf("{}"); // what begins with more of its own comes first, then what says more
  const first = ([one], [other]) => before(other) - before(one) || other.length - one.length;
  const patterns = withPlaces.sort(first).map(([english, other]) => {
    const parts = english.split("{}").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return [new RegExp(`^${parts.join("(.+?)")}$`), other];
  });

  function said(text) {
    if (Object.hasOwn(course.words, text)) return course.words[text];
    for (const [pattern, other] of patterns) {
      const found = pattern.exec(text);
      if (!found) continue;
      const parts = found.slice(1);
      return other.replace(/\{\}/g, () => said(parts.shift()));
    }
    return text;
  }

  function renamed(one) {
    for (const name of NAMES) {
      const before = one.getAttribute(name);
      if (before && said(before) !== before) one.setAttribute(name, said(before));
    }
  }

  function replaced(text) {
    const before = text.data.trim();
    if (!before || text.parentElement?.closest(CODE)) return;
    const after = said(before.replace(/\s+/g, " "));
    if (after !== before) text.data = text.data.replace(before, () => after);
  }

  function all(node) {
    if (node.nodeType === Node.TEXT_NODE) return replaced(node);
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    renamed(node);
    node.querySelectorAll(NAMES.map((name) => `[${name}]`).join()).forEach(renamed);
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) replaced(walker.currentNode);
  }

  all(document.body);
  new MutationObserver((changes) => changes.forEach(({ type, target, addedNodes }) => {
    if (type === "childList") addedNodes.forEach(all);
    else if (type === "characterData") replaced(target);
    else renamed(target);
  })).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: NAMES });
})();
