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

  document.querySelectorAll(LIVE).forEach((one) => one.remove());
  document.querySelectorAll("[hidden]").forEach((one) => one.removeAttribute("hidden"));
  const written = new XMLSerializer();
  return [...document.body.childNodes].map((one) => written.serializeToString(one)).join("");
}
