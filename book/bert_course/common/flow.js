// A flow in the page: what the step shows of its lines, and numbers that the reader changes (flow.py fills in STATE and
// FUNCTIONS).
(function () {
  var root = document.currentScript.parentElement, state = STATE, stage = root.querySelector(".stage");
  var lines = [...stage.querySelectorAll(".line")], player = root.querySelector(".course-player");
  // Numbers that appear come from where they were last seen, or from their row in the first matrix of their line.
  function fly(row, shown) {
    var group = row.parentElement, own = row.querySelectorAll("rect[data-box]"), name = own[0].dataset.box;
    var same = shown.find(one => one !== row && one.dataset.row === row.dataset.row && one.querySelector(`[data-box="${name}"]`));
    var beside = shown.filter(one => one.closest("svg") === row.closest("svg") && one.parentElement !== group);
    var from = same || beside.find(one => one.dataset.row === row.dataset.row) || beside[0];
    if (!from) return;
    var starts = from.querySelectorAll("rect[data-box]");
    row.querySelectorAll("text").forEach(function (number, j) {
      var a = starts[Math.min(j, starts.length - 1)].getBoundingClientRect(), b = own[j].getBoundingClientRect();
      var pixel = own[j].width.baseVal.value / (b.width || 1);
      var there = `translate(${(a.x - b.x) * pixel}px, ${(a.y - b.y) * pixel}px)`;
      number.animate([{transform: there, opacity: 0.2}, {transform: "none", opacity: 1}], {duration: 250, easing: "ease-out"});
    });
  }
  var last = -1, still = matchMedia("(prefers-reduced-motion: reduce)");
  function show(i) {
    var step = state.steps[i], shown = [...stage.querySelectorAll("[data-row]:not(.blank)")], fresh = [];
    lines.forEach(function (line, l) {
      var filled = false;
      line.querySelectorAll("[data-at]").forEach(function (box) {
        var rows = step.rows[box.dataset.at] || [], lit = step.lit[box.dataset.at] || [];
        filled = filled || rows.length > 0;
        box.querySelectorAll("[data-row]").forEach(function (row) {
          if (row.classList.contains("blank") && rows.includes(+row.dataset.row)) fresh.push(row);
          row.classList.toggle("blank", !rows.includes(+row.dataset.row));
          row.lastElementChild.classList.toggle("on", lit.includes(+row.dataset.row));
        });
      });
      line.classList.toggle("now", step.now.includes(l));
      line.classList.toggle("pale", !filled);
    });
    if (i === last + 1 && last >= 0 && !still.matches) fresh.forEach(row => fly(row, shown));
    last = i;
  }
  function room() {
    var wide = root.clientWidth;
    var tall = lines.map(function (line) {
      var box = line.viewBox.baseVal;
      return box.height * Math.min(1, Math.max(0.86, wide / box.width)); // flow.css has the same
    });
    var steps = state.steps.map(step => [...new Set(step.now)].reduce((sum, l) => sum + tall[l], 0));
    stage.style.minHeight = wide <= 600 ? Math.ceil(Math.max(...steps)) + "px" : "";
  }
  stage.classList.add("live");
  player.addEventListener("frame", event => show(event.detail));
  show(+root.querySelector("input[type=range]").value);
  new ResizeObserver(room).observe(root);
  if (!state.edit) return;

  // --- The numbers that the reader changes, and all that hangs on them ---
  var functions = {FUNCTIONS}, fields = root.querySelector(".fields"), values = {};
  function entrywise(a, b, f) {
    var n = Math.max(a.length, b.length), m = Math.max(a[0].length, b[0].length);
    return Array.from({length: n}, (_, i) => Array.from({length: m}, (_, j) =>
      f(a[i % a.length][j % a[0].length], b[i % b.length][j % b[0].length])));
  }
  var signs = {
    "@": (a, b) => a.map(row => b[0].map((_, j) => row.reduce((sum, v, i) => sum + v * b[i][j], 0))),
    "T": a => a[0].map((_, j) => a.map(row => row[j])),
    "+": (a, b) => entrywise(a, b, (x, y) => x + y), "-": (a, b) => entrywise(a, b, (x, y) => x - y),
    "*": (a, b) => entrywise(a, b, (x, y) => x * y), "/": (a, b) => entrywise(a, b, (x, y) => x / y)
  };
  function value(tree) {
    if (typeof tree === "string") return values[tree];
    if (typeof tree === "number") return [[tree]];
    return (signs[tree[0]] || functions[tree[0]])(...tree.slice(1).map(value));
  }
  function write() {
    stage.querySelectorAll("[data-box]").forEach(function (part) {
      var box = values[part.dataset.box], at = part.dataset.entry.split(","), v = box[+at[0]][+at[1]];
      if (part.tagName === "text") {
        part.textContent = String(Number(v.toFixed(state.digits[part.dataset.box])) + 0);
      } else {
        var largest = Math.max(...box.flat().map(Math.abs)) || 1;
        part.setAttribute("fill-opacity", (0.3 * Math.abs(v) / largest).toFixed(2));
      }
    });
    root.querySelectorAll("[data-name]").forEach(function (part) {
      var at = part.dataset.name.split(",");
      if (state.names[at[0]]) part.textContent = state.names[at[0]][+at[1]];
    });
  }
  function compute() {
    values = Object.assign({}, state.inputs);
    for (var name in state.formulas) values[name] = value(state.formulas[name]);
    var rows = state.inputs[state.edit];
    fields.querySelectorAll("[data-choice]").forEach(function (button) {
      var choice = state.choices[button.dataset.choice];
      var now = choice[1].every((v, j) => v === rows[choice[0]][j]);
      button.setAttribute("aria-pressed", String(now));
    });
    write();
  }
  fields.addEventListener("click", function (event) {
    var choice = state.choices[event.target.dataset.choice];
    if (!choice) return;
    state.inputs[state.edit][choice[0]] = choice[1].slice();
    if (state.names[state.rows]) state.names[state.rows][choice[0]] = event.target.dataset.choice;
    stage.querySelectorAll("input").forEach(function (input) {
      var at = input.dataset.entry.split(",");
      if (+at[0] === choice[0]) input.value = choice[1][+at[1]];
    });
    compute();
  });
  stage.addEventListener("input", function (event) {
    var at = (event.target.dataset.entry || "").split(","), v = event.target.valueAsNumber;
    if (at.length < 2 || !isFinite(v)) return;
    state.inputs[state.edit][+at[0]][+at[1]] = v;
    compute();
  });
  fields.hidden = false;
  compute();
})();
