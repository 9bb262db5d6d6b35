"""What a check says, once: as text for a terminal and for stored outputs, as HTML for Jupyter."""

from __future__ import annotations

import html
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bert_course.check.differences import Differing, as_array, described, digits_that_differ
from bert_course.common.palette import STYLE, colour
from minigrad.tensor import Tensor

WIDTH = 100  # of what is printed, in characters
ROWS, COLUMNS = 8, 8  # what is shown whole as HTML
TEXT_ROWS, TEXT_COLUMNS = 4, 6  # and as text
ENTRIES = 5  # of a large array that differ, and are listed


MARKS = {"right": "✓", "wrong": "✗", "note": "·"}  # not by colour alone

_STYLE = f"""<style>
.course-check {{border-left: 4px solid {colour("third")}; padding: 0.1rem 0 0.1rem 0.9rem; max-width: 50rem}}
.course-check.is-right {{border-color: {colour("right")}}}
.course-check.is-wrong {{border-color: {colour("wrong")}}}
.course-check p {{margin: 0.35rem 0}}
.course-check .behind {{font-size: 1.12em}}
.course-check.is-right .verdict {{color: {colour("right")}}}
.course-check.is-wrong .verdict, .course-check .caution {{color: {colour("wrong")}}}
.course-check .values {{display: flex; flex-wrap: wrap; gap: 0.4rem 2rem; margin: 0.4rem 0}}
.course-check .value {{overflow-x: auto}}
.course-check table {{border-collapse: collapse; margin: 0.15rem 0; font-size: 0.92em; font-variant-numeric: tabular-nums}}
.course-check :is(td, th) {{border: 1px solid rgba(128, 128, 128, 0.35); padding: 0.15em 0.6em; text-align: right; background: none; font-weight: normal}}
.course-check td.off {{color: {colour("wrong")}; font-weight: bold; text-decoration: underline dotted}}
.course-check .expected td.off {{color: {colour("right")}; text-decoration: none}}
.course-check pre {{white-space: pre; overflow-x: auto; margin: 0.3rem 0; padding: 0.5rem 0.7rem; border: 1px solid rgba(128, 128, 128, 0.35)}}
.course-check pre code {{white-space: pre; word-break: normal}}
.course-check details details {{margin-left: 1rem}}
.course-check summary {{cursor: pointer}}
</style>"""


@dataclass(frozen=True)
class Values:
    """The input of a wrong case, what came, and what was expected.

    inputs: by parameter. differing: the first place where the answer's value differs; None if there is no value.
    """

    inputs: Mapping[str, Any]
    differing: Differing | None = None

    def _both(self) -> list[tuple[str, Any, np.ndarray | None]]:
        if self.differing is None:
            return []
        one = self.differing
        where = f", {one.where}" if one.where else ""
        return [(f"yours{where}", one.got, one.wrong), (f"expected{where}", one.want, one.wrong)]

    def text(self) -> list[str]:
        """Lines, if all there is to compare is small; else none."""
        both = [(label, _rows(value), value) for label, value, _ in self._both()]
        if not both or any(not rows or not _fits(rows, TEXT_ROWS, TEXT_COLUMNS) for _, rows, _ in both):
            return []
        shown = both + [(name, _rows(value), value) for name, value in self.inputs.items()]
        wide = max(len(label) for label, _, _ in shown) + 2
        lines = []
        for label, rows, value in shown:
            if rows is None or not _fits(rows, TEXT_ROWS, TEXT_COLUMNS):
                lines.append(f"  {label:{wide}}{_in_short(value)}")
                continue
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for number, row in enumerate(rows):
                cells = "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
                lines.append(f"  {'' if number else label:{wide}}{cells}")
        return lines

    def html(self) -> str:
        """Yours and expected side by side, the inputs in one row, to unfold if there is something to compare."""
        parts = []
        one = self.differing
        if one is not None and one.wrong is not None and not _fits(_rows(one.got), ROWS, COLUMNS):
            parts.append(_entries_html(one))
        elif one is not None:
            shown = "".join(_value_html(*labelled) for labelled in self._both())
            parts.append(f'<div class="values">{shown}</div>')
        if self.inputs:
            inputs = "".join(_value_html(name, value) for name, value in self.inputs.items())
            inputs = f'<div class="values">{inputs}</div>'
            parts.append(
                f"<details><summary>The input</summary>{inputs}</details>" if one is not None else inputs
            )
        return "\n".join(parts)


@dataclass
class Report:
    """One thing that a check says.

    verdict: a key of MARKS. title: what it is about and the verdict in words. more: the rest of the first paragraph.
    caution: what stands above all else. paragraphs: what is behind a wrong answer, or what else there is to say. symptom
    and values: a case that shows it. besides: what else was seen. hints: to unfold one after the other in HTML;
    solution: gives the source that stands behind the last one. call: the line that asks for the next hint or the
    solution, in text. onward: what to do next. footnotes: asides.
    """

    verdict: str
    title: str
    more: str = ""
    caution: str = ""
    paragraphs: list[str] = field(default_factory=list)
    symptom: str = ""
    values: Values | None = None
    besides: list[str] = field(default_factory=list)
    hints: Sequence[str] = ()
    solution: Callable[[], str] | None = None
    call: str = ""
    onward: str = ""
    footnotes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        first = [self.caution, f"{self.title} {self.more}".strip(), *self.paragraphs, self.symptom]
        return "\n".join(
            [
                *map(_filled, filter(None, first)),
                *(self.values.text() if self.values else []),
                *map(_filled, self.besides),
                *filter(None, [self.call, self.onward]),
                *self.footnotes,
            ]
        )

    def _repr_html_(self) -> str:
        mark = f'<span aria-hidden="true">{MARKS[self.verdict]}</span>'
        parts = [
            f'<p class="caution"><b>! {_marked_up(self.caution)}</b></p>' if self.caution else "",
            f'<p><b class="verdict">{mark} {_marked_up(self.title)}</b> {_marked_up(self.more)}</p>',
            *(f'<p class="behind">{_marked_up(text)}</p>' for text in self.paragraphs),
            f"<p>{_marked_up(self.symptom)}</p>" if self.symptom else "",
            self.values.html() if self.values else "",
            *(f"<p>{_marked_up(text)}</p>" for text in self.besides),
            self._hints_html(),
            f"<p>{_marked_up(self.onward)}</p>" if self.onward else "",
            *(f"<p>{_marked_up(text)}</p>" for text in self.footnotes),
        ]
        body = "\n".join(part for part in parts if part)
        return f'<div class="course-check course-colours is-{self.verdict}">{STYLE}{_STYLE}\n{body}\n</div>'

    def _hints_html(self) -> str:
        """Each hint within the one before: the next can be asked for when that one is open."""
        inner = ""
        if self.solution:
            listing = f"<pre><code>{html.escape(self.solution())}</code></pre>"
            inner = f"<details><summary>One solution</summary>{listing}</details>"
        for number, hint in reversed(list(enumerate(self.hints, 1))):
            summary = f"<summary>Hint {number} of {len(self.hints)}</summary>"
            inner = f"<details>{summary}<p>{_marked_up(hint)}</p>{inner}</details>"
        return inner


LOOKING = "Looking for the mistake …"


def tell_so_far(report: Report) -> Callable[[Report], None] | None:
    """Show what is known of a wrong answer before its mistake is looked for, where somebody looks on.

    Returns what shows the whole after it: in its place, or in a terminal what is new.
    """
    so_far = replace(report, paragraphs=[], besides=[LOOKING], hints=(), solution=None, call="")
    shell = sys.modules["IPython"].get_ipython() if _in_ipython() else None
    if getattr(shell, "watched", hasattr(shell, "kernel")):  # a page, or Jupyter
        from IPython.display import display

        shown: Any = display(so_far, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        return lambda whole: shown.update(whole)
    if hasattr(shell, "watched") or not sys.stdout.isatty():
        return None
    print(printable(so_far), flush=True)

    def go_on(whole: Report) -> None:
        case: dict[str, Any] = {} if whole.symptom != so_far.symptom else {"symptom": "", "values": None}
        tell(replace(whole, title="", more="", caution="", **case))

    return go_on


def tell(thing: Any) -> None:
    """Show it at once: as HTML in a notebook, as text elsewhere. It need not be the last line of a cell."""
    if _in_ipython():
        from IPython.display import display

        display(thing)  # type: ignore[no-untyped-call, unused-ignore]
    else:
        print(printable(thing))


def printable(thing: Any) -> str:
    """Its text, with "?" for what this terminal or file cannot hold, such as an arrow in Windows' cp1252."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return str(thing).encode(encoding, "replace").decode(encoding)


def _in_ipython() -> bool:
    """Whether a kernel or IPython runs this, without importing it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def _filled(text: str) -> str:
    """A paragraph in lines that fit a page."""
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)


def _marked_up(text: str) -> str:
    """As HTML, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


# --- Values ----------------------------------------------------------------------------------------------


def _number(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value + 0.0:.4g}"  # + 0.0: no -0
    return str(value)


def _rows(value: Any) -> list[list[str]] | None:
    """The entries of a number, a vector or a matrix in rows; None for everything else."""
    if not isinstance(value, Tensor | np.ndarray | np.generic | int | float | str):
        return None
    if isinstance(value, str):
        return [[value]]
    array = as_array(value)
    if array.ndim > 2 or not array.size or array.size > 10_000:
        return None
    return [[_number(entry) for entry in row] for row in np.atleast_2d(array)]


def _in_short(value: Any) -> str:
    """A shape or another few numbers as Python writes them, of what is longer its kind."""
    plain = isinstance(value, tuple | list) and all(isinstance(one, int | float | str) for one in value)
    return repr(value) if plain and len(repr(value)) <= 60 else described(value)


def _fits(rows: list[list[str]] | None, most: int, wide: int) -> bool:
    return rows is not None and len(rows) <= most and len(rows[0]) <= wide


def _value_html(label: str, value: Any, wrong: np.ndarray | None = None) -> str:
    kind = "value expected" if label.startswith("expected") and wrong is not None else "value"
    rows = _rows(value)
    name = f"<div>{html.escape(label)}</div>"
    if rows is None or not _fits(rows, ROWS, COLUMNS):
        return f'<div class="value">{name}<code>{html.escape(_in_short(value))}</code></div>'
    off = np.zeros((len(rows), len(rows[0])), bool) if wrong is None else np.atleast_2d(wrong)
    body = "".join(
        "<tr>" + "".join(_cell(text, mark) for text, mark in zip(row, marks, strict=True)) + "</tr>"
        for row, marks in zip(rows, off, strict=True)
    )
    return f'<div class="{kind}">{name}<table><tbody>{body}</tbody></table></div>'


def _cell(text: str, off: bool) -> str:
    return f'<td class="off">{html.escape(text)}</td>' if off else f"<td>{html.escape(text)}</td>"


def _entries_html(one: Differing) -> str:
    """The first entries of a large array that differ."""
    assert one.wrong is not None
    places = np.argwhere(one.wrong)
    rows = []
    for place in map(tuple, places[:ENTRIES].tolist()):
        want, got = digits_that_differ(one.want[place], one.got[place])
        where = ", ".join(map(str, place))
        rows.append(f'<tr><th scope="row">[{where}]</th><td class="off">{got}</td><td>{want}</td></tr>')
    where = f"{one.where}, " if one.where else ""
    head = (
        f"{where}shape {one.want.shape}; of the entries that differ, the first {len(rows)} of {len(places):,}"
    )
    return (
        f'<div class="value"><div>{html.escape(head)}</div><table><thead><tr><th scope="col">entry</th>'
        f'<th scope="col">yours</th><th scope="col">expected</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )
