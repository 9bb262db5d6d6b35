"""Figures that answer to the reader: HTML, SVG and a few lines of JavaScript in a cell's output.

No server, no download: they work in JupyterLab and in the built book without a network. Colours are the course's
(palette.py), which follow the page from light to dark, and `currentColor`. Until its script runs a player shows its
first frame. Every number is rounded before it is written, so that stored
outputs can be compared.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from bert_course.common.palette import STYLE, colour

BLUE, RED = colour("first"), colour("second")
HIGHEST = 26  # rem: of a drawing, so that it stands with its slider and its words in one screen

_PLAYER = """<div class="course-player course-colours">
PALETTE
<style>
.course-player {max-width: 36rem; margin: 0.5rem auto}
.course-player .stage {margin: 0 auto}
.course-player .stage:not(.whole) > svg {width: 100%; height: auto; display: block}
.course-player button svg {width: 0.8em; height: 0.8em; vertical-align: -0.05em; fill: currentColor}
.course-player .controls {display: flex; gap: 0.5rem; align-items: center; margin: 0.3rem 0}
.course-player [hidden] {display: none}
.course-player input {flex: 1; min-width: 0; height: 2rem; accent-color: var(--course-first)}
.course-player button {min-width: 2.2rem; height: 2.2rem; font: inherit; color: inherit; background: none; border: 1px solid currentColor; border-radius: 4px; padding: 0 0.5rem; cursor: pointer}
.course-player button:focus-visible {outline: 2px solid var(--course-second); outline-offset: 2px}
.course-player .words {display: grid}
.course-player .words > * {grid-area: 1 / 1}
.course-player .room {visibility: hidden}
.course-player .text strong {margin-right: 0.6em}
@media print {.course-player :is(.controls, .room) {display: none !important}}
</style>
STAGE
<div class="controls" hidden>
<button type="button" aria-label="play" class="play"><svg viewBox="0 0 12 12" aria-hidden="true"><path d="M2 0.5v11l9.5-5.5z"/></svg></button>
<button type="button" aria-label="back">‹</button>
<input type="range" min="0" max="LAST" value="FIRST" aria-label="LABEL">
<button type="button" aria-label="on">›</button>
</div>
<div class="words"><div class="text" aria-live="polite">TEXT</div></div>
<script>
(function () {
  var root = document.currentScript.parentElement, frames = FRAMES;
  var stage = root.querySelector(".stage"), slider = root.querySelector(".controls input"), words = root.querySelector(".words");
  var text = root.querySelector(".text"), play = root.querySelector(".play"), timer = null, printed = null;
  var whole = stage.classList.contains("whole"); // a drawing that stays: another script shows the step in it
  if (!whole) frames[FIRST].svg = stage.innerHTML;
  function say(box, frame) {
    var title = document.createElement("strong");
    title.textContent = frame.title;
    if (frame.text.toLowerCase().indexOf(frame.title.toLowerCase()) === 0) box.replaceChildren(frame.text);
    else box.replaceChildren(title, frame.text);
  }
  function show(i) {
    i = Math.max(0, Math.min(frames.length - 1, i));
    slider.value = i;
    slider.setAttribute("aria-valuetext", frames[i].title);
    if (!whole) stage.innerHTML = frames[i].svg;
    say(text, frames[i]);
    root.dispatchEvent(new CustomEvent("frame", {detail: i}));
  }
  function face(name, path) {
    play.setAttribute("aria-label", name);
    play.querySelector("path").setAttribute("d", path);
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    face("play", "M2 0.5v11l9.5-5.5z");
    text.setAttribute("aria-live", "polite");
  }
  function step(by) { stop(); show(+slider.value + by); }
  function start() {
    if (+slider.value === frames.length - 1) show(0);
    face("pause", "M1.5 0.5h3.2v11H1.5zM7.3 0.5h3.2v11H7.3z");
    text.setAttribute("aria-live", "off");
    timer = setInterval(function () {
      if (!root.isConnected) return stop();
      show(+slider.value + 1);
      if (+slider.value === frames.length - 1) stop();
    }, 1200);
  }
  slider.addEventListener("input", function () { step(0); });
  play.addEventListener("click", function () { timer ? stop() : start(); });
  root.querySelector("[aria-label=back]").addEventListener("click", function () { step(-1); });
  root.querySelector("[aria-label=on]").addEventListener("click", function () { step(1); });
  root.addEventListener("keydown", function (e) {
    var by = {ArrowLeft: -1, ArrowRight: 1}[e.key];
    if (by && e.target.tagName === "BUTTON") { e.preventDefault(); step(by); }
  });
  window.addEventListener("beforeprint", function () { printed = +slider.value; stop(); show(frames.length - 1); });
  window.addEventListener("afterprint", function () { if (printed !== null) show(printed); printed = null; });
  frames.forEach(function (frame) {
    var room = document.createElement("div");
    room.className = "room"; room.setAttribute("aria-hidden", "true");
    say(room, frame);
    words.append(room);
  });
  root.querySelector(".controls").hidden = false;
  play.hidden = frames.length < 2 || matchMedia("(prefers-reduced-motion: reduce)").matches;
  show(FIRST);
})();
</script>
</div>"""


@dataclass
class Frame:
    """One state of a `Player`: its title, an SVG picture, and a sentence or two on it."""

    title: str
    svg: str
    text: str


class Player:
    """Frames that the reader steps through or plays, with a slider, buttons or the arrow keys; a cell's last line.

    It has the height of its tallest frame and its longest text from the start, so that the page below stands still.
    On paper it is its last frame. label: what the slider moves. alt: what there is to see. first: which frame shows
    first, the last without it; it plays from the first. With `whole`, HTML, the drawing stays, and an event "frame"
    tells a script beside it which step to show in it. Raises ValueError if there is no such frame.
    """

    def __init__(
        self, frames: Sequence[Frame], label: str, alt: str, first: int | None = None, whole: str = ""
    ) -> None:
        if not frames:
            raise ValueError("a player needs at least one frame")
        first = len(frames) - 1 if first is None else first
        if not 0 <= first < len(frames):
            raise ValueError(f"first must be within 0 … {len(frames) - 1}, got {first}")
        self.frames, self.label, self.alt, self.first, self.whole = list(frames), label, alt, first, whole

    def _repr_html_(self) -> str:
        frame = self.frames[self.first]  # the script takes its picture from the page
        frames = [asdict(one) | ({"svg": ""} if i == self.first else {}) for i, one in enumerate(self.frames)]
        alt = html.escape(self.alt)
        tall = _tallest([frame.svg for frame in self.frames if frame.svg] or ["0 0 1 1"])
        size = f"aspect-ratio: 100 / {tall:.1f}; max-width: {100 * HIGHEST / tall:.1f}rem"
        stage = f'<div class="stage" role="img" aria-label="{alt}" style="{size}">{frame.svg}</div>'
        if self.whole:
            stage = f'<div class="stage whole" role="group" aria-label="{alt}">{self.whole}</div>'
        parts = {
            "LABEL": html.escape(self.label),
            "LAST": str(len(self.frames) - 1),
            "FIRST": str(self.first),
            "TEXT": f"<strong>{html.escape(frame.title)}</strong> {html.escape(frame.text)}",
            "STAGE": stage,
            "PALETTE": STYLE,
            "FRAMES": _json(frames),
        }
        return _filled(_PLAYER, parts)

    def __repr__(self) -> str:
        lines = [f"{frame.title}: {frame.text}" for frame in self.frames]
        return "\n".join([f"{self.alt} ({self.label})", *lines])


player = Player  # in a page


_MAP = """<div class="course-map course-colours">
PALETTE
<style>
.course-map {max-width: 36rem; margin: 0.5rem auto; overflow-x: auto}
.course-map table {border-collapse: collapse; margin: 0; font-size: 0.85rem}
.course-map .text {min-height: 4.5em; padding-top: 0.4rem}
.course-map th {font-weight: normal; padding: 0 0.4rem; text-align: right}
.course-map thead th {writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; padding: 0.3rem 0; line-height: 1}
.course-map td {width: 1.9em; height: 1.9em; min-width: 1.3em; border: 1px solid rgba(128, 128, 128, 0.35); padding: 0}
.course-map tbody td {background: color-mix(in srgb, var(--course-weight) var(--share), transparent); print-color-adjust: exact}
.course-map thead td {border: 0}
.course-map td:focus {outline: 3px solid var(--course-second); outline-offset: -2px}
.course-map .here {font-weight: bold}
.course-map .legend {display: flex; gap: 0.5rem; align-items: center; margin-top: 0.5rem; font-size: 0.85rem}
.course-map .scale {width: 8rem; height: 0.9rem; border: 1px solid rgba(128, 128, 128, 0.35); background: linear-gradient(to right, transparent, var(--course-weight)); print-color-adjust: exact}
</style>
<table role="grid" aria-label="ALT">
HEAD
<tbody>ROWS</tbody>
</table>
<div class="legend">weight: 0 <span class="scale"></span> 1</div>
<div class="text" aria-live="polite">HELP</div>
<script>
(function () {
  var root = document.currentScript.parentElement, table = root.querySelector("table"), text = root.querySelector(".text");
  function look(cell) {
    var row = cell.parentElement.cells, column = table.tHead.rows[0].cells[cell.cellIndex];
    table.querySelectorAll(".here").forEach(one => one.classList.remove("here"));
    row[0].classList.add("here");
    column.classList.add("here");
    text.textContent = "\u201c" + row[0].textContent + "\u201d gives " + cell.dataset.weight +
      " of its attention to \u201c" + column.textContent + "\u201d; most (" + row[0].dataset.most + ") goes to \u201c" + row[0].dataset.to + "\u201d.";
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
})();
</script>
</div>"""


class AttentionMap:
    """Attention weights to explore with the pointer or the keyboard, to be the last line of a cell.

    A cell under the pointer or the focus says what it is in words. tokens: n words. weights (n, n): a row for each
    asking token. alt: what there is to see. Raises ValueError if the shapes do not fit.
    """

    def __init__(self, tokens: Sequence[str], weights: np.ndarray, alt: str) -> None:
        weights = np.asarray(weights)
        n = len(tokens)
        if weights.shape != (n, n):
            raise ValueError(f"{n} tokens need weights of shape ({n}, {n}), got {weights.shape}")
        self.tokens, self.weights, self.alt = list(tokens), weights, alt

    def _repr_html_(self) -> str:
        names = [html.escape(token) for token in self.tokens]
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        rows = []
        for i, row in enumerate(self.weights):
            to = int(row.argmax())
            cells = "".join(
                f'<td role="gridcell" tabindex="{0 if i == j == 0 else -1}" data-weight="{weight:.2f}" '
                f'aria-label="{names[i]} to {names[j]}: {weight:.2f}" '
                f'style="--share: {100 * weight:.0f}%"></td>'
                for j, weight in enumerate(row)
            )
            rows.append(
                f'<tr><th scope="row" data-most="{row[to]:.2f}" data-to="{names[to]}">{names[i]}</th>{cells}</tr>'
            )
        parts = {
            "ALT": html.escape(self.alt),
            "PALETTE": STYLE,
            "HELP": "Rows ask, columns answer. Point at a cell, or press Tab and the arrow keys.",
            "HEAD": f"<thead><tr><td></td>{head}</tr></thead>",
            "ROWS": "\n".join(rows),
        }
        return _filled(_MAP, parts)

    def __repr__(self) -> str:
        width = max(map(len, self.tokens), default=0)
        rows = [
            f"{token:>{width}}: {' '.join(f'{weight:.2f}' for weight in row)}"
            for token, row in zip(self.tokens, self.weights, strict=True)
        ]
        return "\n".join([self.alt, *rows])


attention_map = AttentionMap  # in a page


# --- Pictures for frames ---------------------------------------------------------------------------------


def bars(
    series: dict[str, Sequence[float]],
    top: float,
    labels: tuple[str, str],
    order: Sequence[int] | None = None,
) -> str:
    """A bar chart as SVG, a panel for each of `series`, one above the other, all with the same axis from 0 to `top`.

    labels: of the horizontal and the vertical axis. order: which value stands first, which second, and so on; the same
    for all frames of a player, a bar can be followed from one to the next. Raises ValueError if there is nothing to
    draw, a bar below 0, or an order that does not name each value once.
    """
    if not series or top <= 0 or not all(len(values) and min(values) >= 0 for values in series.values()):
        raise ValueError("bars need at least one series, values of 0 and more in each, and a top above 0")
    if order is not None:
        order = [int(place) for place in order]
        for name, values in series.items():
            if sorted(order) != list(range(len(values))):
                raise ValueError(
                    f"order must name each of the {len(values)} values of {name!r} once, got {order}"
                )
        series = {name: [values[place] for place in order] for name, values in series.items()}
    width, height, left, gap = 480, 130, 44, 30
    colours = (BLUE, RED, colour("third"))
    parts = []
    for number, (name, values) in enumerate(series.items()):
        y0 = (height + gap) * number + 22
        step = (width - left) / len(values)
        parts.append(
            f'<text x="{left}" y="{y0 - 6}" fill="currentColor" font-size="14">{html.escape(name)}</text>'
        )
        for share in (0, 0.5, 1):
            y = y0 + height * (1 - share)
            parts.append(
                f'<line x1="{left}" x2="{width}" y1="{y:.0f}" y2="{y:.0f}" stroke="currentColor" stroke-opacity="0.25"/>'
                f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end" fill="currentColor" font-size="12">{share * top:g}</text>'
            )
        for i, value in enumerate(values):
            tall = height * min(1.0, value / top)
            parts.append(
                f'<rect x="{left + i * step + 1:.1f}" y="{y0 + height - tall:.1f}" width="{step - 2:.1f}" '
                f'height="{tall:.1f}" fill="{colours[number % len(colours)]}"/>'
            )
    total = (height + gap) * len(series) + 26
    parts.append(
        f'<text x="{(left + width) / 2:.0f}" y="{total - 6}" text-anchor="middle" fill="currentColor" font-size="13">'
        f"{html.escape(labels[0])}; height: {html.escape(labels[1])}</text>"
    )
    return svg(width, total, parts)


def svg(width: int, height: int, parts: Sequence[str]) -> str:
    """A picture from its parts, `width` by `height`, that scales with the page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif">{"".join(parts)}</svg>'
    )


def _filled(template: str, parts: dict[str, str]) -> str:
    """The template with each word that names a part replaced, once over: a part may contain such a word itself."""
    return re.sub("|".join(rf"\b{name}\b" for name in parts), lambda match: parts[match.group()], template)


def _tallest(pictures: Sequence[str]) -> float:
    """The height of the tallest picture, where each is 100 wide; rounded up, so that it has room."""
    sizes = [re.search(r'viewBox="\S+ \S+ (\S+) ([^"\s]+)"', picture) for picture in pictures]
    return max(math.ceil(1000 * float(size[2]) / float(size[1])) / 10 if size else 1.0 for size in sizes)


def _json(value: object) -> str:
    """As a JavaScript literal; `</`, `<!` and `<script` are written so that no text can end the script or hide its end."""
    text = json.dumps(value, ensure_ascii=False).replace("</", "<\\/")
    return re.sub("<(?=!|script)", r"\\u003c", text, flags=re.IGNORECASE)
