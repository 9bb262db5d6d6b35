"""What `masking` shows: a mask to paint on the scores of one head, and the stored model with and without its mask."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.palette import STYLE, colour
from bert_course.common.small_model import SENTENCES, hide_each, small_model
from bert_course.common.softmax import softmax
from minigrad import no_grad
from minigrad.bert.model import BertForPreTraining
from minigrad.text.tokenizer import WordPieceTokenizer

# --- A mask to paint ---------------------------------------------------------------------------------------


Way = Callable[[np.ndarray, np.ndarray], np.ndarray]

# What becomes of hidden keys: weights (L, L) from scores and from what is allowed, in Python and, with 1 and 0 for
# what is allowed, in JavaScript.
WAYS: dict[str, tuple[Way, str]] = {
    "score + −∞": (
        lambda S, allowed: softmax(np.where(allowed, S, -np.inf)),
        "(s, a) => softmax(s.map((v, j) => a[j] ? v : -Infinity))",
    ),
    "score + lowest": (
        lambda S, allowed: softmax(S + np.where(allowed, 0, float(np.finfo(np.float32).min))),
        "(s, a) => softmax(s.map((v, j) => v + (a[j] ? 0 : -3.4028234663852886e38)))",
    ),
    "score × 0": (lambda S, allowed: softmax(S * allowed), "(s, a) => softmax(s.map((v, j) => v * a[j]))"),
    "weight × 0": (lambda S, allowed: softmax(S) * allowed, "(s, a) => softmax(s).map((v, j) => v * a[j])"),
}


def painted(S: np.ndarray, V: np.ndarray, allowed: np.ndarray, way: str) -> tuple[np.ndarray, np.ndarray]:
    """The weights A (L, L) and the outputs Z (L, d_v) that the painter shows.

    S (L, L), V (L, d_v), allowed (L, L) of booleans; way: a name of `WAYS`.
    """
    with np.errstate(invalid="ignore"):
        A = WAYS[way][0](S, allowed)
    return A, A @ V


_STYLE = f"""
.course-paint {{max-width: 38rem; margin: 0.6rem 0}}
.course-paint .controls {{display: flex; flex-wrap: wrap; gap: 0.4rem; align-items: center; margin-bottom: 0.5rem}}
.course-paint :is(button, select) {{
  font: inherit; font-size: 0.9rem; color: inherit; background: transparent; padding: 0.25rem 0.6rem;
  border: 1px solid rgba(128, 128, 128, 0.8); border-radius: 4px; cursor: pointer}}
.course-paint option {{color: black; background: white}}
.course-paint :is(button, select):focus-visible {{outline: 2px solid {colour("second")}; outline-offset: 1px}}
.course-paint button[aria-pressed="true"] {{background: rgba(128, 128, 128, 0.25); outline: 2px solid currentColor}}
.course-paint .room {{overflow-x: auto; max-width: 100%}}
.course-paint table {{
  border-collapse: collapse; margin: 0; width: auto; font-size: 0.85rem; font-variant-numeric: tabular-nums}}
.course-paint :is(th, td) {{
  padding: 0.15rem 0.3rem; border: 0; background: none; font-weight: normal; text-align: center; white-space: nowrap}}
.course-paint th[scope="row"] {{text-align: right}}
.course-paint td.cell {{
  min-width: 2.6em; height: 2.2em; border: 1px solid rgba(128, 128, 128, 0.5); cursor: pointer; user-select: none;
  background-color: color-mix(in srgb, {colour("weight")} calc(45% * var(--share)), transparent);
  print-color-adjust: exact; touch-action: manipulation}}
.course-paint td.hidden {{
  background-image: repeating-linear-gradient(45deg, rgba(128, 128, 128, 0.45) 0 1px, transparent 1px 6px)}}
.course-paint td.cell:focus {{outline: 3px solid {colour("second")}; outline-offset: -2px}}
.course-paint .wrong {{color: {colour("wrong")}; font-weight: bold}}
.course-paint .gap {{padding-left: 0.9rem}}
.course-paint p {{margin: 0.4rem 0 0; min-height: 3em}}
@media (max-width: 30rem) {{
  .course-paint table {{font-size: 0.7rem}}
  .course-paint :is(th, td) {{padding: 0.1rem 0.12rem}}
  .course-paint td.cell {{min-width: 2.4em}}
  .course-paint .gap {{padding-left: 0.35rem}}
}}
@media print {{.course-paint .controls {{display: none}}}}
.course-paint .controls[hidden] {{display: none}}
"""

_SCRIPT = """
(function () {
  var root = document.currentScript.parentElement, state = STATE, ways = {WAYS};
  var allowed = state.presets[state.first].map(row => row.slice()), way = state.way, brush = null;
  var table = root.querySelector("table"), text = root.querySelector("p"), select = root.querySelector("select");
  var cells = Array.from(table.tBodies[0].rows, row => Array.from(row.querySelectorAll(".cell")));
  function softmax(s) {
    var top = Math.max(...s), e = s.map(v => Math.exp(v - top)), sum = e.reduce((a, b) => a + b);
    return e.map(v => v / sum);
  }
  function written(v) { return isNaN(v) ? "NaN" : (v + 0).toFixed(2).replace(/^-(0\\.00)$/, "$1"); }
  function mark(part, v, wrong) {
    part.textContent = written(v);
    part.classList.toggle("wrong", wrong);
  }
  function draw() {
    allowed.forEach(function (a, i) {
      var weights = ways[way](state.scores[i], a), sum = weights.reduce((x, y) => x + y);
      weights.forEach(function (w, j) {
        var cell = cells[i][j];
        mark(cell, w, !a[j] && !(Math.abs(w) < 1e-9));
        cell.classList.toggle("hidden", !a[j]);
        cell.style.setProperty("--share", isNaN(w) ? 0 : w.toFixed(2));
        cell.setAttribute("aria-label", state.tokens[i] + (a[j] ? " sees " : " may not see ") + state.tokens[j] +
          ", weight " + written(w));
      });
      mark(root.querySelector('[data-sum="' + i + '"]'), sum, !(Math.abs(sum - 1) < 1e-9));
      state.values[0].forEach(function (_, f) {
        var z = weights.reduce((total, w, j) => total + w * state.values[j][f], 0);
        mark(root.querySelector('[data-output="' + i + ',' + f + '"]'), z, isNaN(z));
      });
    });
    root.querySelectorAll("[data-preset]").forEach(function (button) {
      var same = String(state.presets[button.dataset.preset]) === String(allowed);
      button.setAttribute("aria-pressed", String(same));
    });
  }
  function say(cell) { text.textContent = cell.getAttribute("aria-label") + "."; }
  function paint(cell, to) {
    var at = cell.dataset.cell.split(",");
    allowed[+at[0]][+at[1]] = to;
    draw();
    say(cell);
  }
  function place(cell) { return cell.dataset.cell.split(",").map(Number); }
  function focus(cell) {
    table.querySelectorAll(".cell").forEach(function (other) { other.tabIndex = -1; });
    cell.tabIndex = 0;
    cell.focus();
  }
  table.addEventListener("pointerdown", function (e) {
    var cell = e.target.closest(".cell");
    if (!cell) return;
    e.preventDefault();
    focus(cell);
    brush = 1 - allowed[place(cell)[0]][place(cell)[1]];
    paint(cell, brush);
  });
  table.addEventListener("pointerover", function (e) {
    var cell = e.target.closest(".cell");
    if (cell && brush !== null && e.buttons) paint(cell, brush);
  });
  window.addEventListener("pointerup", function () { brush = null; });
  table.addEventListener("focusin", function (e) { if (e.target.closest(".cell")) say(e.target); });
  table.addEventListener("keydown", function (e) {
    var cell = e.target.closest(".cell");
    var step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[e.key];
    if (!cell) return;
    var at = place(cell);
    if (step) {
      e.preventDefault();
      var next = (cells[at[0] + step[0]] || [])[at[1] + step[1]];
      if (next) focus(next);
    } else if (e.key === " " || e.key === "Enter") {
      e.preventDefault();
      paint(cell, 1 - allowed[at[0]][at[1]]);
    }
  });
  root.querySelector(".controls").addEventListener("click", function (e) {
    var preset = state.presets[e.target.dataset.preset];
    if (!preset) return;
    allowed = preset.map(row => row.slice());
    draw();
  });
  select.addEventListener("change", function () { way = select.value; draw(); });
  root.querySelector(".controls").hidden = false;
  draw();
})();
"""


class Painter:
    """Weights, row sums and outputs of a head whose mask the reader paints, to be the last line of a cell.

    tokens: L names. scores (L, L): before the mask, scaled. values (L, d_v), with a name in features for each column.
    presets: masks by name, (L, L) of booleans, True where a query may look; the first is the still picture. Raises
    ValueError for other shapes, masks that are not of booleans, or no mask at all.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        scores: np.ndarray,
        values: np.ndarray,
        features: Sequence[str],
        presets: Mapping[str, np.ndarray],
    ) -> None:
        self.tokens, self.features = list(tokens), list(features)
        self.scores, self.values = np.asarray(scores, float), np.asarray(values, float)
        self.presets = {name: np.asarray(allowed) for name, allowed in presets.items()}
        n = len(self.tokens)
        for name, array, shape in (
            ("scores", self.scores, (n, n)),
            ("values", self.values, (n, len(self.features))),
            *((f"the mask {name!r}", allowed, (n, n)) for name, allowed in self.presets.items()),
        ):
            if array.shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
        if not self.presets:
            raise ValueError("a painter needs at least one mask to begin with")
        for name, allowed in self.presets.items():
            if allowed.dtype != bool:
                raise ValueError(f"the mask {name!r}: expected booleans, got {allowed.dtype}")

    def _repr_html_(self) -> str:
        first, way = next(iter(self.presets)), next(iter(WAYS))
        state = {
            "tokens": self.tokens,
            "scores": self.scores.tolist(),
            "values": self.values.tolist(),
            "presets": {name: allowed.astype(int).tolist() for name, allowed in self.presets.items()},
            "first": first,
            "way": way,
        }
        ways = ", ".join(f"{json.dumps(name)}: {script}" for name, (_, script) in WAYS.items())
        script = _SCRIPT.replace("STATE", json.dumps(state).replace("<", "\\u003c")).replace("WAYS", ways)
        buttons = "".join(
            f'<button type="button" data-preset="{html.escape(name)}" aria-pressed="{str(name == first).lower()}">'
            f"{html.escape(name)}</button>"
            for name in self.presets
        )
        options = "".join(f"<option>{name}</option>" for name in WAYS)
        return (
            f'<div class="course-paint course-colours">{STYLE}<style>{_STYLE}</style>'
            f'<div class="controls" hidden>{buttons}<label>a hidden key: <select>{options}</select></label></div>'
            f'<div class="room">{self._table(self.presets[first], way)}</div>'
            '<p aria-live="polite">Press a cell to hide that key from that query, or to show it again. On a keyboard, '
            f"use Tab, the arrow keys and Space. Hatched cells are hidden.</p><script>{script}</script></div>"
        )

    def _table(self, allowed: np.ndarray, way: str) -> str:
        A, Z = painted(self.scores, self.values, allowed, way)
        names = [html.escape(token) for token in self.tokens]
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        head += '<th scope="col" class="gap">sum</th>'
        head += "".join(
            f'<th scope="col"{_gap(f)}>{html.escape(name)}</th>' for f, name in enumerate(self.features)
        )
        body = ""
        for i, name in enumerate(names):
            cells = "".join(
                f'<td class="cell{"" if allowed[i, j] else " hidden"}" role="gridcell" data-cell="{i},{j}" '
                f'tabindex="{0 if i == j == 0 else -1}" style="--share: {weight:.2f}">{_number(weight)}</td>'
                for j, weight in enumerate(A[i])
            )
            total = f'<td class="gap" data-sum="{i}">{_number(A[i].sum())}</td>'
            outputs = "".join(
                f'<td{_gap(f)} data-output="{i},{f}">{_number(z)}</td>' for f, z in enumerate(Z[i])
            )
            body += f'<tr><th scope="row">{name}</th>{cells}{total}{outputs}</tr>'
        label = "Attention weights, rows ask and columns answer; then the sum of each row and its output"
        return (
            f'<table role="grid" aria-label="{label}"><thead><tr><td></td>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )

    def __repr__(self) -> str:
        lines = ["The weights of each query under each mask, and its output"]
        width = max(map(len, self.tokens))
        for name, allowed in self.presets.items():
            A, Z = painted(self.scores, self.values, allowed, next(iter(WAYS)))
            lines.append(f"{name}:")
            for token, weights, outputs in zip(self.tokens, A, Z, strict=True):
                shares, mixture = (" ".join(map(_number, row)) for row in (weights, outputs))
                lines.append(f"  {token:>{width}}: {shares} -> {mixture}")
        return "\n".join(lines)


def _gap(column: int) -> str:
    return ' class="gap"' if column == 0 else ""


def _number(value: float) -> str:
    return "NaN" if np.isnan(value) else f"{value + 0:.2f}"


mask_painter = Painter  # in a page

# --- The stored model, with padding ------------------------------------------------------------------------


@dataclass
class HiddenWords:
    """The stored model and twelve sentences, in which each token in turn is hidden and has to be guessed."""

    model: BertForPreTraining = field(init=False)
    tokenizer: WordPieceTokenizer = field(init=False)
    texts: Sequence[str] = SENTENCES

    def __post_init__(self) -> None:
        self.model, self.tokenizer = small_model()

    def loss(self, padding: int, masked: bool = True, alone: bool = False) -> float:
        """The mean loss of the hidden tokens, in nats, with so many [PAD] after each sentence.

        masked: whether the model is given the attention mask. alone: whether that hides all other words too.
        """
        losses: list[float] = []
        for hidden in hide_each(self.tokenizer, self.texts):
            batch = np.pad(hidden.inputs, ((0, 0), (0, padding)))  # (n, L + padding); [PAD] has the id 0
            mask = np.pad(np.ones_like(hidden.inputs), ((0, 0), (0, padding)))  # (n, L + padding)
            if alone:
                mask[:, hidden.places] = np.eye(len(batch), dtype=int)
            with no_grad():
                output = self.model(batch, mask if masked else None)
            losses += hidden.losses(output.prediction_logits.numpy()).tolist()
        return float(np.mean(losses))


def padding_curves(
    padding: Sequence[int], without: Sequence[float], masked: Sequence[float], blind: float
) -> Picture:
    """The loss of hidden words, in nats, by the number of [PAD], without and with a mask; and with no word in view."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.axhline(blind, color=colours["third"], linestyle=":")
        axes.text(padding[0], blind - 0.1, "no other word in view", color=colours["third"], va="top")
        axes.plot(padding, without, color=colours["second"], marker="o", markersize=4)
        axes.text(padding[-1], without[-1] + 0.15, "without the mask", color=colours["second"], ha="right")
        axes.plot(padding, masked, color=colours["first"], marker="o", markersize=4)
        axes.text(
            padding[-1], masked[-1] - 0.15, "with the mask", color=colours["first"], ha="right", va="top"
        )
        axes.set(xlabel="[PAD] after each sentence", ylabel="loss of a hidden token (nats)", ylim=(0, 7))

    alt = (
        "Without the mask the loss of hidden tokens rises with the number of [PAD], more slowly after the first few; "
        "with the mask the loss stays the same"
    )
    return figure(plot, alt)
