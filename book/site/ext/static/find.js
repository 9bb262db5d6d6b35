// The search page: looks in COURSE_TEXT (search_text.js) for sections that have every word of the query.
(function () {
  const MOST = 60; // results that are listed
  const AROUND = 90; // characters before and after the word that an excerpt shows

  const SMALL = new Set("a an and are as at be by for from how in is it of on or that the this to what why with".split(" "));

  // The words of a query, without the small ones if there are others.
  function words(query) {
    const all = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_√]+/gu) || [])];
    const large = all.filter((word) => !SMALL.has(word));
    return large.length ? large : all;
  }
  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  // A word of the query is the beginning of a word of the text; an ending such as -s or -ing may differ.
  const stem = (word) => (word.length > 5 ? word.replace(/(?:ies|ing|es|s|ed)$/u, "") : word);
  const finder = (word, flags) => new RegExp("(?<![\\p{L}\\p{N}])" + escaped(stem(word)) + "[\\p{L}\\p{N}]*", flags);

  // How well a section fits: 0 if a word is missing. A title counts most, then a term in bold, which the section
  // defines, then prose, then code.
  function score(page, section, wanted, query) {
    const heads = page.title + " " + section.title;
    let sum = 0;
    for (const word of wanted) {
      const find = finder(word, "giu");
      const inTitle = (section.title.match(find) || []).length, inHead = (heads.match(find) || []).length;
      const inText = (section.text.match(find) || []).length, inCode = (section.code.match(find) || []).length;
      if (!inHead && !inText && !inCode) return 0;
      sum += 20 * Math.min(inTitle, 1) + 4 * Math.min(inHead, 1) + 3 * Math.min(inText, 5) + Math.min(inCode, 2);
      if (finder(word, "iu").test(section.terms)) sum += 6;
    }
    if (section.title.toLowerCase().includes(query.trim().toLowerCase())) sum += 60; // the very words of a heading
    return page.page === "book/errata" ? sum / 8 : sum; // a list of all things comes after the page about one
  }

  function marked(text, wanted) {
    const box = document.createElement("span");
    const find = new RegExp(wanted.map((word) => finder(word, "u").source).join("|"), "giu");
    let last = 0;
    for (const found of text.matchAll(find)) {
      box.append(text.slice(last, found.index));
      const mark = document.createElement("mark");
      mark.textContent = found[0];
      box.append(mark);
      last = found.index + found[0].length;
    }
    box.append(text.slice(last));
    return box;
  }

  // The piece of a text, prose before code, that has the most of the words.
  function excerpt(section, wanted) {
    const any = new RegExp(wanted.map((word) => finder(word, "u").source).join("|"), "giu");
    for (const text of [section.text, section.code]) {
      let best = -1, most = 0;
      for (const found of text.matchAll(any)) {
        const piece = text.slice(found.index, found.index + 2 * AROUND);
        const number = wanted.filter((word) => finder(word, "iu").test(piece)).length;
        if (number > most) [best, most] = [found.index, number];
      }
      if (best < 0) continue;
      const from = Math.max(0, best - AROUND), to = Math.min(text.length, best + 2 * AROUND);
      const start = from ? text.indexOf(" ", from) + 1 : 0;
      const end = to < text.length ? Math.max(text.lastIndexOf(" ", to), best + 1) : to;
      return (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
    }
    return section.text.slice(0, 2 * AROUND);
  }

  function item(result, wanted) {
    const entry = document.createElement("li");
    const link = document.createElement("a");
    link.href = result.page.page + ".html" + (result.section.id ? "#" + result.section.id : "");
    link.textContent = result.section.id ? result.page.title + " › " + result.section.title : result.page.title;
    const context = document.createElement("p");
    context.className = "context";
    context.append(marked(excerpt(result.section, wanted), wanted));
    entry.append(link, context);
    return entry;
  }

  function search(query) {
    const wanted = words(query);
    const results = document.getElementById("search-results");
    results.replaceChildren();
    if (!wanted.length) return;
    const found = [];
    for (const page of window.COURSE_TEXT)
      for (const section of page.sections) {
        const value = score(page, section, wanted, query);
        if (value) found.push({ page, section, value });
      }
    found.sort((a, b) => b.value - a.value);
    const summary = document.createElement("p");
    summary.className = "search-summary";
    const sections = found.length === 1 ? "1 section" : found.length + " sections";
    summary.textContent = found.length
      ? `Found in ${sections}` + (found.length > MOST ? `; the best ${MOST}:` : ":")
      : "No section has all of these words.";
    const list = document.createElement("ul");
    list.className = "search";
    list.append(...found.slice(0, MOST).map((result) => item(result, wanted)));
    results.append(summary, list);
  }

  const query = new URLSearchParams(location.search).get("q") || "";
  const field = document.querySelector(".bd-search-container input[type=search]");
  if (field) field.value = query;
  if (field && !query) field.focus();
  search(query);
})();
