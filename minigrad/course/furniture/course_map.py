"""The map of the course: every chapter as a box that leads to its page, BERT's parts standing on each other."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from minigrad.course.furniture.palette import STYLE, colour

# The stem of each chapter's page, in order, and what its box says.
CHAPTERS: tuple[tuple[str, str], ...] = (
    ("start", "What BERT is"),
    ("arrays", "Arrays"),
    ("reverse_mode", "Reverse mode"),
    ("modules", "Modules"),
    ("optimisers", "Optimisers"),
    ("wordpiece", "WordPiece: text in pieces"),
    ("embeddings", "Embeddings: pieces as vectors"),
    ("one_head", "One head"),
    ("many_heads", "Twelve heads"),
    ("masking", "Masking"),
    ("feed_forward", "Feed-forward"),
    ("add_norm", "Add & Norm"),
    ("encoder", "Encoder: a stack of such layers"),
    ("mlm", "Hidden words"),
    ("nsp", "Sentence pairs"),
    ("pretraining", "Pre-training"),
    ("finetuning", "Fine-tuning"),
    ("looking_inside", "Looking inside"),
    ("seq2seq", "Recurrent networks"),
    ("attention_decoder", "Attention in a decoder"),
    ("transformer", "The full Transformer"),
    ("features", "BERT's features"),
    ("numbers", "Numbers"),
    ("step_cost", "What a step costs"),
    ("fast", "Making it fast"),
    ("scaling", "Scaling"),
    ("errata", "The sources' errata"),
)

TOWER_WIDTH, SIDE_WIDTH = 400, 250
TALL, GAP = 32, 16  # of a box, and between two: an arrow fits in

_STYLE = f"""<style>
.course-tower {{display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-end; margin: 0.5rem 0}}
.course-tower svg {{height: auto; min-width: 0}}
.course-tower svg:first-of-type {{flex: 1 1 {TOWER_WIDTH * 0.82:.0f}px; max-width: {TOWER_WIDTH * 1.1:.0f}px}}
.course-tower svg + svg {{flex: 0 1 {SIDE_WIDTH}px}}
.course-tower text {{font: 14px sans-serif; fill: {colour("ink")}}}
.course-tower .caption {{font-size: 13px; fill: {colour("third")}}}
.course-tower a {{text-decoration: none}}
.course-tower a rect {{fill: {colour("first")}; fill-opacity: 0.08; stroke: {colour("first")}; stroke-width: 1.5}}
.course-tower a.planned rect {{fill: none; stroke: {colour("grid")}}}
.course-tower a.planned text {{fill: {colour("third")}}}
.course-tower a.here rect {{fill-opacity: 0.3; stroke-width: 3}}
.course-tower a.here text {{font-weight: bold}}
.course-tower a:hover rect, .course-tower a:focus rect {{stroke: {colour("second")}; stroke-width: 2.5}}
.course-tower .line {{fill: none; stroke: {colour("third")}; stroke-width: 1.2}}
</style>"""


class CourseMap:
    """The map, with the chapter that is lit and those that are greyed."""

    def __init__(self, here: int | None, planned: frozenset[int]) -> None:
        self.here, self.planned = here, planned

    def _repr_html_(self) -> str:
        return f'<div class="course-tower course-colours">{STYLE}{_STYLE}\n{self._tower()}\n{self._side()}\n</div>'

    def __repr__(self) -> str:
        here = "" if self.here is None else f"; you are in chapter {self.here}"
        return (
            "Map of the course, a tower from below: the engine (chapters 1 to 4), text in pieces (5), embeddings (6), "
            "the encoder (12) of heads (7 to 9), Add & Norm (11) and feed-forward (10), the tasks of pre-training "
            "(13 to 15), and its use (16, 17). Beside it: what came before BERT (18 to 21), machines (22 to 25), and "
            f"the sources' errata (26){here}."
        )

    def _tower(self) -> str:
        """BERT from the arrays up: rows of boxes from the top down, and arrows between them."""
        wide, y, inset = TOWER_WIDTH, 0.0, 12
        parts: list[str] = []

        def row(*numbers: int, left: float = 1.0, arrow: bool = True) -> None:
            nonlocal y
            # Two boxes are halves; of three, the one with the longest label needs the most.
            shares = [len(CHAPTERS[n][1]) + 6 if len(numbers) > 2 else 1 for n in numbers]
            room, x = wide - 2 * left - 8 * (len(numbers) - 1), left
            for n, share in zip(numbers, shares, strict=True):
                parts.append(self._box(n, x, y + 1, room * share / sum(shares)))
                x += room * share / sum(shares) + 8
            y += TALL + (GAP if arrow else 8)
            if arrow:
                parts.append(_arrow(wide / 2, y))

        row(16, 17)
        row(15)
        row(13, 14)
        top = y
        y += inset
        row(12, left=inset, arrow=False)
        row(11, left=inset)
        row(10, left=inset)
        row(11, left=inset)
        row(7, 8, 9, left=inset, arrow=False)
        parts.append(
            f'<rect class="line" x="1" y="{top + 1:g}" width="{wide - 2}" height="{y - top:g}" rx="8" '
            'stroke-dasharray="5 4"/>'
        )
        y += GAP
        parts.append(_arrow(wide / 2, y))
        row(6)
        row(5)
        row(3, 4, arrow=False)
        row(1, 2, arrow=False)
        row(0, arrow=False)
        return _svg(
            wide, y, parts, "The parts of BERT, each with its chapter, from the arrays at the bottom up"
        )

    def _side(self) -> str:
        """What stands beside the tower: lists of boxes under a caption."""
        parts, y = [], 0.0
        groups: Sequence[tuple[str, Iterable[int]]] = (
            ("Before and beside BERT", range(18, 22)),
            ("Machines", range(22, 26)),
            ("Mistakes in print", (26,)),
        )
        for name, numbers in groups:
            parts.append(f'<text class="caption" x="2" y="{y + 16:g}">{name}</text>')
            y += 24
            for number in numbers:
                parts.append(self._box(number, 1, y + 1, SIDE_WIDTH - 2))
                y += TALL + 6
            y += 10
        if self.planned:
            parts.append(f'<text class="caption" x="2" y="{y + 14:g}">Grey: planned, not written yet.</text>')
            y += 24
        return _svg(SIDE_WIDTH, y, parts, "Chapters beside the tower")

    def _box(self, number: int, x: float, y: float, width: float) -> str:
        stem, name = CHAPTERS[number]
        kind, state = "", ""
        if number == self.here:
            kind, state = ' class="here" aria-current="page"', ", you are here"
        elif number in self.planned:
            kind, state = ' class="planned"', ", planned"
        label = html.escape(name)
        return (
            f'<a href="{number:02}_{stem}.html"{kind} aria-label="Chapter {number}, {label}{state}">'
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{TALL}" rx="5"/>'
            f'<text x="{x + 9:g}" y="{y + 21:g}"><tspan font-weight="bold">{number}</tspan>'
            f'<tspan dx="8">{label}</tspan></text></a>'
        )


def course_map(here: int | None = None) -> CourseMap:
    """The map of the course, to be the last line of a cell: a click leads to a chapter, those not written are grey.

    here: the number of the chapter that shows it, which is lit. Raises ValueError for a chapter that there is not.
    """
    if here is not None and not 0 <= here < len(CHAPTERS):
        raise ValueError(f"here must be a chapter, 0 to {len(CHAPTERS) - 1}, got {here}")
    return CourseMap(here, frozenset(range(len(CHAPTERS))) - written())


def written() -> frozenset[int]:
    """The numbers of the chapters that have a notebook; all of them where the course's folder is not at hand."""
    book = Path(__file__).resolve().parents[3] / "book"
    stems = {path.stem for path in book.glob("*.ipynb")}
    found = frozenset(n for n, (stem, _) in enumerate(CHAPTERS) if f"{n:02}_{stem}" in stems)
    return found or frozenset(range(len(CHAPTERS)))


def _arrow(x: float, bottom: float) -> str:
    """An arrow that points up, in the gap above a row whose top is at `bottom`."""
    top = bottom - GAP + 4
    return f'<path class="line" d="M{x:g} {bottom - 2:g}V{top:g}m-4 4l4 -4l4 4"/>'


def _svg(width: float, height: float, parts: Sequence[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + 2:g}" width="{width:g}" '
        f'role="group" aria-label="{label}">' + "\n".join(parts) + "</svg>"
    )
