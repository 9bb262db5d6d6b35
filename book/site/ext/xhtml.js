// What epub.py runs in Chromium on the body of a page: formulas as MathML, players at their last frame, predictions as a
// list with the answers at the end, nothing that needs a hand; then XML. LIVE: what to leave out.
async (LIVE) => {
  const make = (html) => document.createRange().createContextualFragment(html);
  window.dispatchEvent(new Event("beforeprint")); // players show their last frame

  const answers = [];
  document.querySelectorAll(".course-prediction").forEach((box, i) => {
    const choices = [...box.querySelectorAll("button")].map((one, j) => `${"abcdefg"[j]}) ${one.innerHTML.trim()}`);
    answers.push(`${i + 1}: ${choices[box.dataset.right]}`);
    box.replaceWith(make(`<p><b>${i + 1}</b> ${choices.join(" &#160; ")}</p>`));
  });
  const end = document.querySelector("body > section");
  if (answers.length && end) end.append(make(`<p class="answers">Answers to the predictions. ${answers.join("; ")}.</p>`));

  await MathJax.startup.promise;
  for (const one of document.querySelectorAll(".math")) {
    const display = one.tagName === "DIV";
    const tex = one.textContent.trim().replace(/^\\[([]|\\[)\]]$/g, "");
    one.replaceWith(make(MathJax.tex2mml(tex, { display })));
  }

  // Colours come from the site's styles, which stay behind.
  const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "font-size", "font-weight", "text-anchor", "visibility", "opacity"];
  const plain = document.body.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg")).appendChild(
    document.createElementNS("http://www.w3.org/2000/svg", "text"));
  const usual = Object.fromEntries(DRAWN.map((name) => [name, getComputedStyle(plain).getPropertyValue(name)]));
  plain.parentElement.remove();
  for (const one of document.querySelectorAll("svg *")) {
    const computed = getComputedStyle(one);
    const said = DRAWN.filter((name) => one.style[name] || one.hasAttribute(name) || computed.getPropertyValue(name) !== usual[name]);
    const values = said.map((name) => [name, computed.getPropertyValue(name)]);
    one.removeAttribute("style");
    values.forEach(([name, value]) => one.setAttribute(name, value));
    if (computed.display === "none") one.setAttribute("display", "none");
  }
  for (const one of document.querySelectorAll(".cell_output :is(td, th, div, span)")) {
    const { backgroundColor, visibility, display } = getComputedStyle(one);
    if (backgroundColor !== "rgba(0, 0, 0, 0)") one.style.backgroundColor = backgroundColor;
    if (visibility === "hidden") one.style.visibility = "hidden";
    if (display === "none") one.style.display = "none";
  }

  document.querySelectorAll(".course-player .text strong").forEach((one) => one.after(" "));

  // Two drawings of a page may have the same names in them, which XML forbids.
  document.querySelectorAll("svg").forEach((drawing, i) => {
    if (drawing.matches("[role=group]")) drawing.setAttribute("role", "document");
    for (const link of drawing.querySelectorAll("a")) {
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = link.textContent.trim();
      link.prepend(title);
    }
    const known = new Set([...drawing.querySelectorAll("[id]")].map((one) => one.id));
    for (const one of [drawing, ...drawing.querySelectorAll("*")]) {
      if (known.has(one.id)) one.id = `${one.id}-${i}`;
      for (const { name, value } of [...one.attributes]) {
        const renamed = value.replace(/#([\w-]+)/g, (all, id) => (known.has(id) ? `#${id}-${i}` : all));
        if (name !== "id" && renamed !== value) one.setAttribute(name, renamed);
      }
    }
  });

  for (const link of document.querySelectorAll("a[href]")) {
    const href = link.getAttribute("href");
    if (!/^[a-z]+:/.test(href)) link.setAttribute("href", href.replace(/\.html(?=#|$)/, ".xhtml"));
  }

  document.querySelectorAll(LIVE).forEach((one) => one.remove());
  document.querySelectorAll("[hidden]").forEach((one) => one.removeAttribute("hidden"));
  const written = new XMLSerializer();
  return [...document.body.childNodes].map((one) => written.serializeToString(one)).join("");
}
