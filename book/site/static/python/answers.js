// `all_parts` and `own_file` take the reader's own answers out of the exercises' notebooks, which are beside an exercise and
// above a chapter: put them there, with what the browser keeps of them.
(function () {
  const TAKES = /\b(all_parts|own_file)\(/;
  const PARTS = ["arrays", "reverse_mode", "optimisers", "wordpiece", "embeddings", "one_head", "many_heads", "masking", "feed_forward",
    "add_norm", "encoder", "mlm", "nsp", "pretraining"];
  const from = `${document.documentElement.dataset.content_root}_sources/exercises/`;
  const to = course.page.startsWith("exercises/") ? "." : "..";

  async function bringAnswers(cell) {
    for (const stem of PARTS) {
      const answer = await fetch(`${from}${stem}.ipynb`).catch(() => ({ ok: false }));
      if (!answer.ok) continue; // then it is not there
      const notebook = await answer.json();
      const typed = course.recall(`code of exercises/${stem}`, {});
      for (const one of notebook.cells) {
        if (one.id in typed) one.source = typed[one.id].source;
      }
      // A text in JSON is one in Python, too.
      const source = `__import__("pathlib").Path("${to}/${stem}.ipynb").write_text(${JSON.stringify(JSON.stringify(notebook))})`;
      await course.python.run({ id: cell.id, source }, () => {});
    }
  }

  document.addEventListener("course-cells", () => {
    for (const cell of course.cells.list) {
      if (TAKES.test(cell.source)) cell.before = () => bringAnswers(cell);
    }
  });
})();
