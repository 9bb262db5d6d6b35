// The page as a notebook for Jupyter: the site's own, with what the reader typed and what was run here.
course.notebook = (function () {
  const SOURCE = `${document.documentElement.dataset.content_root}_sources/${DOCUMENTATION_OPTIONS.pagename}.ipynb`;

  // An output as nbformat has it.
  function stored(output, count) {
    if (output.output_type === "stream") return { output_type: "stream", name: output.name || "stdout", text: output.text };
    if (output.output_type === "error") {
      const { ename, evalue, traceback } = output;
      return { output_type: "error", ename: ename || "", evalue: evalue || "", traceback: traceback || [] };
    }
    const { output_type: kind, data, metadata } = output;
    const made = { output_type: kind, data, metadata: metadata || {} };
    return kind === "execute_result" ? { ...made, execution_count: count } : made;
  }

  // The notebook with the cells as they are in the page. What was typed for a cell that is no more stands at the end.
  function filled(notebook, cells, typed) {
    const byId = new Map(cells.map((cell) => [cell.id, cell]));
    for (const one of notebook.cells.filter((cell) => cell.cell_type === "code")) {
      const cell = byId.get(one.id);
      if (!cell) continue;
      const ran = cell.result && cell.result.text === cell.text;
      if (cell.edited) Object.assign(one, { source: cell.text, outputs: [], execution_count: null });
      if (!ran) continue;
      one.execution_count = cell.result.at || null;
      one.outputs = cell.result.outputs.map((output) => stored(output, one.execution_count));
    }
    for (const [id, { source }] of Object.entries(typed).filter(([id]) => !byId.has(id))) {
      const text = "You typed this into a cell that the page no longer has.";
      notebook.cells.push({ cell_type: "markdown", id: `was-${id}`.slice(0, 64), metadata: {}, source: text });
      notebook.cells.push({ cell_type: "code", id, metadata: {}, source, outputs: [], execution_count: null });
    }
    return notebook;
  }

  return async function download() {
    const answer = await fetch(SOURCE);
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    course.typed.write();
    const notebook = filled(await answer.json(), course.cells.list, course.typed.all());
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${JSON.stringify(notebook, null, 1)}\n`], { type: "application/x-ipynb+json" }));
    link.download = `${course.page.split("/").pop()}.ipynb`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };
})();
