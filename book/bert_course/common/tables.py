"""Tables on the page: HTML for the reader, and the same cells as text where a notebook's outputs are compared."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

# Light and dark alike: lines and ground are shares of the text's own colour.
_STYLE = """<style>
.course-table {overflow-x: auto; margin: 0.5rem 0}
.course-table table {border-collapse: collapse; margin: 0; font-size: 0.92em; font-variant-numeric: tabular-nums}
.course-table table :is(th, td) {padding: 0.25em 0.8em; border: 0; text-align: left; background: none; max-width: none}
.course-table table :is(th, td) {border-bottom: 1px solid rgba(128, 128, 128, 0.35)}
.course-table table thead :is(th, td) {border-bottom: 2px solid rgba(128, 128, 128, 0.6); vertical-align: bottom}
.course-table table :is(th, td).number {text-align: right}
.course-table table td.number {white-space: nowrap}
.course-table table {max-width: 100%}
.course-table table tbody th {font-weight: normal}
.course-table caption {caption-side: top; text-align: left; padding: 0 0 0.3em; color: inherit}
</style>"""


class Table:
    """Rows under a header, each cell already a text; `numbers` says which columns stand at the right."""

    def __init__(self, header: list[str], rows: list[list[str]], numbers: list[bool], caption: str) -> None:
        self.header, self.rows, self.numbers, self.caption = header, rows, numbers, caption

    def _repr_html_(self) -> str:
        def cell(kind: str, text: str, column: int, scope: str = "") -> str:
            classes = ' class="number"' if self.numbers[column] else ""
            return f"<{kind}{scope}{classes}>{html.escape(text)}</{kind}>"

        head = "".join(
            cell("th" if name else "td", name, i, ' scope="col"' if name else "")
            for i, name in enumerate(self.header)
        )
        rows = []
        for first, *others in self.rows:
            cells = [cell("td", text, i) for i, text in enumerate(others, 1)]
            rows.append("".join(["<tr>", cell("th", first, 0, ' scope="row"'), *cells, "</tr>"]))
        body = "\n".join(rows)
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        return (
            f'<div class="course-table">{_STYLE}<table>{caption}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]

        def aligned(line: list[str]) -> str:
            cells = zip(line, widths, self.numbers, strict=True)
            return "  ".join(t.rjust(w) if number else t.ljust(w) for t, w, number in cells).rstrip()

        return "\n".join([*([self.caption] if self.caption else []), *map(aligned, lines)])


def table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], digits: int | Sequence[int] = 3, caption: str = ""
) -> Table:
    """A table to be the last line of a cell; the first column names the rows.

    header: a name for each column, the first may be "". rows: texts, numbers, arrays (their shape is shown as text by
    the caller) or None for an empty cell. digits: after the point, for all floats or column by column; integers get
    commas. Raises ValueError for a row that is shorter or longer than the header.
    """
    header, rows = list(header), [list(row) for row in rows]
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} cells, the header has {len(header)}: {row}")
    places = [digits] * len(header) if isinstance(digits, int) else list(digits)
    if len(places) != len(header):
        raise ValueError(f"digits for {len(places)} columns, the header has {len(header)}")
    numbers = [
        any(_is_number(row[i]) for row in rows) and all(row[i] is None or _is_number(row[i]) for row in rows)
        for i in range(len(header))
    ]
    return Table(
        header,
        [[_text(value, place) for value, place in zip(row, places, strict=True)] for row in rows],
        numbers,
        caption,
    )


class Folded:
    """Tables that a reader unfolds one by one, each under its name; as text all of them."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.tables = dict(tables)

    def _repr_html_(self) -> str:
        return "".join(
            f"<details><summary>{html.escape(name)}</summary>{found._repr_html_()}</details>"
            for name, found in self.tables.items()
        )

    def __repr__(self) -> str:
        return "\n\n".join(f"{name}\n{found!r}" for name, found in self.tables.items())


def folded(tables: Mapping[str, tuple[Sequence[str], Iterable[Sequence[Any]]]]) -> Folded:
    """Tables to be the last line of a cell, each folded under its name: a list to look something up in.

    tables: by name, the header and the rows, as for `table`.
    """
    return Folded({name: table(header, rows) for name, (header, rows) in tables.items()})


def spread(values: Iterable[float], digits: int = 3) -> str:
    """A figure over several draws or rounds: its mean, and its lowest and highest value; of one value, that alone.

    Raises ValueError if there are no values.
    """
    values = [float(value) for value in values]
    if not values:
        raise ValueError("spread() needs at least one value")
    if len(values) == 1:
        return _rounded(values[0], digits)
    mean, low, high = (
        _rounded(value, digits) for value in (sum(values) / len(values), min(values), max(values))
    )
    return f"{mean} ({low} to {high})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _text(value: Any, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return _rounded(float(value), digits)
    return str(value)


def _rounded(value: float, digits: int) -> str:
    """With commas, and without the sign where all digits that are left are 0."""
    return f"{value:z,.{digits}f}"
