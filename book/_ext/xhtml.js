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

  document.querySelectorAll(".cell > details > summary").forEach((one) => { one.textContent = "code"; });

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
