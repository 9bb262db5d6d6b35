// Predictions: the output of a cell tagged `predict` waits until the reader asks for it, and then asks whether the
// reader had it. On paper and without this script the answer is simply there.
(function () {
  const key = `predictions of ${course.page}`;

  document.addEventListener("DOMContentLoaded", () => {
    const cells = [...document.querySelectorAll(".cell.tag_predict")].filter((cell) => cell.querySelector(".cell_output"));
    if (!cells.length) return;
    const said = () => course.recall(key, {});

    const answers = cells.map((cell, number) => {
      const output = cell.querySelector(".cell_output");
      const row = document.createElement("div");
      row.className = "course-prediction";
      const ask = course.button("Show the answer", () => open(ask.getAttribute("aria-expanded") !== "true"));
      const verdicts = [[true, "I had it"], [false, "I did not"]].map(([had, text]) => [
        had,
        course.button(text, () => course.keep(key, { ...said(), [number]: had })),
      ]);

      function open(shown) {
        output.classList.toggle("course-asked", !shown);
        ask.setAttribute("aria-expanded", String(shown));
        ask.textContent = shown ? "Hide the answer" : "Show the answer";
        verdicts.forEach(([, button]) => { button.hidden = !shown; });
        document.dispatchEvent(new Event("course-opened"));
      }

      function remember() {
        verdicts.forEach(([had, button]) => button.setAttribute("aria-pressed", String(said()[number] === had)));
      }

      row.append(ask, ...verdicts.map(([, button]) => button));
      output.before(row);
      remember();
      open(number in said());
      document.addEventListener("course-memory", remember);
      return { row, open };
    });

    const all = () => {
      const button = course.button("show all answers of this page", () => answers.forEach((answer) => answer.open(true)));
      button.classList.add("quiet");
      return button;
    };
    answers[0].row.append(all());

    const score = document.createElement("p");
    score.className = "course-score";
    score.setAttribute("role", "status");
    function count() {
      const made = Object.values(said());
      const had = made.filter(Boolean).length;
      const left = cells.length - made.length;
      score.textContent = made.length
        ? `Your predictions: ${had} of ${made.length} right` + (left ? `, ${left} not made yet.` : ".")
        : `This page asks for ${cells.length} predictions.`;
      if (left) score.append(" ", all());
    }
    count();
    document.addEventListener("course-memory", count);
    const section = document.querySelector("article.bd-article > section");
    section.insertBefore(score, section.querySelector(":scope > :is(.course-exercises, .course-next)"));
  });
})();
