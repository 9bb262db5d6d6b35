// A table of attention weights, a row for each token that asks: the pointer and the arrow keys go from cell to cell, the
// tokens of the cell light up, and `tell(row, column)` says what its weight is. `look` writes this into its page, and
// notebooks into a cell's output.
function attentionMap(table, tell) {
  function look(cell) {
    table.querySelectorAll(".here").forEach(one => one.classList.remove("here"));
    cell.parentElement.cells[0].classList.add("here");
    table.tHead.rows[0].cells[cell.cellIndex].classList.add("here");
    tell(cell.parentElement.sectionRowIndex, cell.cellIndex - 1);
  }
  ["mouseover", "focusin"].forEach(kind => table.addEventListener(kind, function (event) {
    if (event.target.matches("tbody td")) look(event.target);
  }));
  table.addEventListener("keydown", function (event) {
    var step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (!step || !event.target.matches("tbody td")) return;
    event.preventDefault();
    var line = table.tBodies[0].rows[event.target.parentElement.sectionRowIndex + step[0]];
    var cell = line && line.cells[event.target.cellIndex + step[1]];
    if (!cell || cell.tagName !== "TD") return;
    event.target.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  });
}
