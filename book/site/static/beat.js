// "Beat it": the reader guesses a hidden word of a story, then the model does, then whoever knows the grammar. Ten rounds;
// a guess gets as many points as it has probability (book/site/ext/live_game.py has the rounds).
(function () {
  const NAMES = ["You", "The model", "Best possible"];
  function make(tag, name, children) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...children);
    return made;
  }

  function start(root) {
    const find = (name) => root.querySelector(name);
    const games = JSON.parse(root.dataset.games);
    const [story, choices, said, score, go] = [".story", ".choices", ".said", ".score", ".go"].map(find);
    let model = null;
    let game = 0;
    let round = 0;
    let points = [0, 0, 0];

    // The model, when its script has come; it may be here already, for the widget above.
    function load() {
      const ready = () => new CourseBert(window.courseModels.stories);
      if (window.courseModels && window.courseModels.stories) return Promise.resolve(ready());
      return new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = root.dataset.script;
        script.onload = () => resolve(ready());
        script.onerror = () => reject(new Error("the model could not be loaded"));
        document.head.append(script);
      });
    }

    // The model's likeliest word.
    function guessed({ halves }) {
      const { pieces } = model.read(halves.join(" [SEP] "));
      const place = pieces.findIndex(({ piece }) => piece === "[MASK]");
      const { scores } = model.forward(pieces.map(({ id }) => id), [place]);
      const shares = CourseBert.softmax(scores[0]);
      const best = shares.reduce((top, share, id) => (share > shares[top] ? id : top), 0);
      return [model.tokenizer.pieces[best], shares[best]];
    }

    function show() {
      root.classList.add("plays");
      const { halves, choices: words } = games[game][round];
      story.hidden = false;
      story.replaceChildren(...halves.flatMap((half, n) => {
        const [before, after] = half.split("[MASK]");
        const parts = after === undefined ? [before] : [before, make("mark", "", ["?"]), after];
        return n ? [document.createElement("br"), ...parts] : parts;
      }));
      choices.replaceChildren(...words.map((word) => {
        const button = make("button", "course-button", [word]);
        button.type = "button";
        button.addEventListener("click", () => answer(word));
        return button;
      }));
      said.hidden = true;
      go.hidden = true;
      score.textContent = `Round ${round + 1} of ${games[game].length}. ${round ? standing() : "Which word is hidden?"}`;
      choices.firstChild.focus({ preventScroll: true });
    }

    const standing = () => NAMES.map((name, i) => `${i ? name.toLowerCase() : name} ${points[i].toFixed(1)}`).join(", ");

    function answer(word) {
      const { exact, answer: truth } = games[game][round];
      const best = Object.keys(exact).reduce((top, one) => (exact[one] > exact[top] ? one : top));
      const [own, share] = guessed(games[game][round]);
      const guesses = [word, own, best];
      said.replaceChildren(...guesses.map((one, i) => {
        const worth = exact[one] || 0;
        points[i] += worth;
        const note = i === 1 ? ` (it is ${Math.round(100 * share)} % sure)` : "";
        const line = make("li", one === truth ? "right" : "", [make("b", "", [NAMES[i]]), ` ${one}${note}: ${worth.toFixed(2)} points`]);
        line.style.setProperty("--share", worth < 0.01 ? 0 : worth);
        return line;
      }));
      story.querySelector("mark").textContent = truth;
      said.hidden = false;
      for (const button of choices.children) {
        button.disabled = true;
        button.classList.toggle("chosen", button.textContent === word);
      }
      round += 1;
      const over = round === games[game].length;
      score.textContent = over ? verdict() : `After ${round} of ${games[game].length}: ${standing()}.`;
      go.textContent = over ? "Ten more" : "Next";
      go.hidden = false;
      go.focus({ preventScroll: true });
    }

    function verdict() {
      const [you, bert, best] = points;
      const how = you > bert + 0.05 ? "You beat the model." : you > bert - 0.05 ? "You and the model are equal." : "The model read better.";
      return `${how} Of ten: ${standing()}. Nobody can get more than the best possible.`;
    }

    go.addEventListener("click", async () => {
      if (!model) {
        go.disabled = true;
        score.textContent = "The model is loading.";
        try {
          model = await load();
        } catch (error) {
          score.textContent = `The game cannot begin: ${error.message}.`;
          return;
        } finally {
          go.disabled = false;
        }
      } else if (round === games[game].length) {
        game = (game + 1) % games.length;
        round = 0;
        points = [0, 0, 0];
      }
      show();
    });
    go.hidden = false;
  }

  document.querySelectorAll(".course-beat").forEach(start);
})();
