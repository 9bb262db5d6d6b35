// Predictions: a question, two or three answers to choose from, and what tells the right one waits until the reader has
// chosen: the output of the cell tagged `predict` and all that follows, up to the next heading, question or text tagged
// `open`. Of a player in that output the first frame shows. On paper, without this script, and for readers who always want
// the answers, everything is there.
(function () {
  const key = `predictions of ${course.page}`; // {number: whether the reader had it}
  const choices = `choices of ${course.page}`; // {number: which answer}

  const always = () => course.recall("answers", false); // on all pages

  const asks = (one) => [...one.querySelectorAll("strong")].some(({ textContent }) => textContent.startsWith("Predict"));

  // What stands between an answer and the next heading, question or text tagged `open`.
  function following(cell) {
    const found = [];
    for (let one = cell.nextElementSibling; one; one = one.nextElementSibling) {
      if (one.matches("section, .course-open") || asks(one)) break;
      found.push(one);
    }
    return found;
  }

  // What waits, as a function that hides or shows it: a player of the answer itself rests at its first frame meanwhile,
  // all else is gone.
  function waiting(one, place) {
    const slider = place === 0 && one.querySelector(".course-player .controls input");
    let rest = null;

    function go(frame) {
      slider.value = frame;
      slider.dispatchEvent(new Event("input"));
    }

    return (shown) => {
      one.classList.toggle(slider ? "course-first-frame" : "course-asked", !shown);
      if (!slider) return;
      if (!shown && rest === null) {
        rest = slider.value;
        go(0);
      } else if (shown && rest !== null) {
        go(rest);
        rest = null;
      }
    };
  }

  function prediction(cell, number, said) {
    const output = cell.querySelector(".cell_output");
    const hidden = following(cell);
    const parts = [output, ...hidden].map(waiting);
    const row = cell.querySelector(".course-prediction") || document.createElement("div");
    row.className = "course-prediction";
    if (!row.isConnected) output.before(row);
    row.hidden = false;
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "Your prediction");
    const right = row.dataset.right;
    const options = [...row.querySelectorAll("button")];
    const verdict = document.createElement("span");
    verdict.setAttribute("role", "status");

    options.forEach((option, index) => option.addEventListener("click", () => {
      course.keep(choices, { ...course.recall(choices, {}), [number]: index });
      course.keep(key, { ...said(), [number]: String(index) === right });
      open(true);
    }));
    const show = course.button("Show the answer", () => open(true));
    show.classList.add("quiet");
    // A question without answers to choose from: the reader says afterwards.
    // In the place of a figure that waits.
    const frame = document.createElement("p");
    frame.className = "course-waits";
    frame.textContent = "A figure waits for your guess.";
    const figure = [output, ...hidden].some((one) => one.querySelector("svg")) && !output.querySelector(".course-player");
    if (figure) row.after(frame);
    const own = options.length ? [] : [[true, "I had it"], [false, "I did not"]].map(([had, text]) => [
      had,
      course.button(text, () => course.keep(key, { ...said(), [number]: had })),
    ]);

    function open(shown) {
      parts.forEach((part) => part(shown));
      show.hidden = shown;
      frame.hidden = shown;
      show.setAttribute("aria-expanded", String(shown));
      own.forEach(([, button]) => { button.hidden = !shown; });
      remember();
      document.dispatchEvent(new Event("course-opened"));
    }

    function remember() {
      const chosen = course.recall(choices, {})[number];
      const shown = show.hidden;
      options.forEach((option, index) => {
        option.setAttribute("aria-pressed", String(chosen === index));
        option.classList.toggle("right", shown && String(index) === right);
      });
      own.forEach(([had, button]) => button.setAttribute("aria-pressed", String(said()[number] === had)));
      const words = String(chosen) === right ? "You had it." : `It is: ${right && options[right].textContent}.`;
      verdict.textContent = shown && options[chosen] ? words : "";
    }

    row.append(show, ...own.map(([, button]) => button), verdict);
    open(number in said() || always());
    document.addEventListener("course-memory", remember);
    return { row, open, hidden };
  }

  document.addEventListener("DOMContentLoaded", () => {
    const said = () => course.recall(key, {});
    const answers = [];
    document.querySelectorAll(".cell.tag_predict").forEach((cell) => {
      const waits = answers.some(({ hidden }) => hidden.includes(cell)); // the second cell of one answer
      if (cell.querySelector(".cell_output") && !waits) answers.push(prediction(cell, answers.length, said));
    });
    if (!answers.length) return;

    const quiet = (text, press) => {
      const button = course.button(text, press);
      button.classList.add("quiet");
      return button;
    };
    const showAll = () => answers.forEach((answer) => answer.open(true));
    const all = () => [
      quiet("show all answers of this page", showAll),
      " ",
      quiet("always show answers", () => {
        course.keep("answers", true);
        showAll();
      }),
    ];
    if (!always()) answers[0].row.append(...all());

    const score = document.createElement("p");
    score.className = "course-score";
    score.setAttribute("role", "status");
    function count() {
      const made = answers.map((_, number) => said()[number]).filter((had) => had !== undefined);
      const had = made.filter(Boolean).length;
      const left = answers.length - made.length;
      score.textContent = made.length
        ? `Your predictions: ${had} of ${made.length} right` + (left ? `, ${left} not made yet.` : ".")
        : `This page asks for ${answers.length} prediction${answers.length > 1 ? "s" : ""}.`;
      if (always()) score.append(" Answers are always shown. ", quiet("let them wait for my guess", () => course.keep("answers", undefined)));
      else if (left) score.append(" ", ...all());
    }
    count();
    document.addEventListener("course-memory", count);
    const section = document.querySelector("article.bd-article > section");
    section.insertBefore(score, section.querySelector(":scope > .course-exercises"));
  });
})();
