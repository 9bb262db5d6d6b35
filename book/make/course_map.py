"""The map of the course: every chapter as a box that leads to its page, BERT's parts standing on each other."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from bert_course.common.palette import STYLE, colour
from bert_course.contents import AFTER, APPENDIX, ATTENTION, CHAPTERS, MACHINES, NUMBERS, PLACES, numbered

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
.course-tower a:hover rect, .course-tower a:focus rect {{stroke: {colour("second")}; stroke-width: 2.5}}
.course-tower .minutes, .course-tower .tick {{font-size: 12.4px; fill: {colour("third")}}}
.course-tower .tick, .course-tower a.read .minutes {{display: none}}
.course-tower a.read .tick {{display: inline}}
.course-tower .line {{fill: none; stroke: {colour("third")}; stroke-width: 1.2}}
</style>"""


class CourseMap:
    """The map: a click leads to a chapter.

    minutes: to read each, where they are given; the site puts a tick in their place once it is read.
    """

    def __init__(self, minutes: Mapping[str, int] | None = None) -> None:
        self.minutes = minutes or {}

    def _repr_html_(self) -> str:
        return f'<div class="course-tower course-colours">{STYLE}{_STYLE}\n{self._tower()}\n{self._side()}\n</div>'

    def __repr__(self) -> str:
        return numbered(
            "Map of the course, a tower from below: the engine (chapters `arrays` to `optimisers`), text in pieces "
            "(chapter `wordpiece`), embeddings (chapter `embeddings`), the encoder (chapter `encoder`) of heads "
            "(chapters `one_head` to `masking`), Add & Norm (chapter `add_norm`) and feed-forward (chapter "
            "`feed_forward`), the tasks of pre-training (chapters `mlm` to `pretraining`), and its use (chapters "
            "`finetuning` to `published`). Beside it: where attention came from (chapters `seq2seq` to "
            "`decoding`), machines (chapters `numbers` to `machines`), what came after BERT (chapters `positions` "
            "and `modern`), and an appendix with the sources' errata."
        )

    def _tower(self) -> str:
        """BERT from the arrays up: rows of boxes from the top down, and arrows between them."""
        wide, y, inset = TOWER_WIDTH, 0.0, 12
        parts: list[str] = []

        def row(*names: str, left: float = 1.0, arrow: bool = True) -> None:
            nonlocal y
            # Two boxes are halves; of three, the one with the longest label needs the most.
            shares = [len(_label(name)) + 6 if len(names) > 2 else 1 for name in names]
            room, x = wide - 2 * left - 8 * (len(names) - 1), left
            for name, share in zip(names, shares, strict=True):
                parts.append(self._box(name, x, y + 1, room * share / sum(shares)))
                x += room * share / sum(shares) + 8
            y += TALL + (GAP if arrow else 8)
            if arrow:
                parts.append(_arrow(wide / 2, y))

        row("looking_inside", "published", arrow=False)
        row("finetuning", "features")
        row("pretraining")
        row("mlm", "nsp")
        top = y
        y += inset
        row("encoder", left=inset, arrow=False)
        row("add_norm", left=inset)
        row("feed_forward", left=inset)
        row("add_norm", left=inset)
        row("one_head", "many_heads", "masking", left=inset, arrow=False)
        parts.append(
            f'<rect class="line" x="1" y="{top + 1:g}" width="{wide - 2}" height="{y - top:g}" rx="8" '
            'stroke-dasharray="5 4"/>'
        )
        y += GAP
        parts.append(_arrow(wide / 2, y))
        row("embeddings")
        row("wordpiece")
        row("modules", "optimisers", arrow=False)
        row("arrays", "reverse_mode", arrow=False)
        row("start", arrow=False)
        return _svg(
            wide, y, parts, "The parts of BERT, each with its chapter, from the arrays at the bottom up"
        )

    def _side(self) -> str:
        """What stands beside the tower: lists of boxes under a caption."""
        parts, y = [], 0.0
        groups = {
            part.partition(". ")[2] or part: [chapter.name for chapter in CHAPTERS if chapter.part == part]
            for part in (ATTENTION, MACHINES, AFTER, APPENDIX)
        }
        for caption, names in groups.items():
            parts.append(f'<text class="caption" x="2" y="{y + 16:g}">{caption}</text>')
            y += 24
            for name in names:
                parts.append(self._box(name, 1, y + 1, SIDE_WIDTH - 2))
                y += TALL + 6
            y += 10
        return _svg(SIDE_WIDTH, y, parts, "Chapters beside the tower")

    def _box(self, name: str, x: float, y: float, width: float) -> str:
        label, number = html.escape(_label(name)), NUMBERS[name]
        note = time = ""
        if name in self.minutes:
            time = f", {self.minutes[name]} minutes"
            right = f'x="{x + width - 8:g}" y="{y + 21:g}" text-anchor="end"'
            note = f'<text class="minutes" {right}>{self.minutes[name]}</text><text class="tick" {right}>✓</text>'
        return (
            f'<a href="{name}.html" aria-label="Chapter {number}, {label}{time}">'
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{TALL}" rx="5"/>'
            f'<text x="{x + 9:g}" y="{y + 21:g}"><tspan font-weight="bold">{number}</tspan>'
            f'<tspan dx="8">{label}</tspan></text>{note}</a>'
        )


def _label(name: str) -> str:
    return CHAPTERS[PLACES[name]].short


def _arrow(x: float, bottom: float) -> str:
    """An arrow that points up, in the gap above a row whose top is at `bottom`."""
    top = bottom - GAP + 4
    return f'<path class="line" d="M{x:g} {bottom - 2:g}V{top:g}m-4 4l4 -4l4 4"/>'


def _svg(width: float, height: float, parts: Sequence[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + 2:g}" width="{width:g}" '
        f'role="group" aria-label="{label}">' + "\n".join(parts) + "</svg>"
    )
