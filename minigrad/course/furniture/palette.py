"""The course's colours (`minigrad/colours.py`) as CSS variables, which follow a page from light to dark."""

from __future__ import annotations

from minigrad.colours import COLOURS


def _variables(dark: bool) -> str:
    return ";".join(f"--course-{name}:{pair[dark]}" for name, pair in COLOURS.items())


# A page says which scheme it has: the book on <html>, JupyterLab on <body>. Elsewhere the light one shows.
STYLE = (
    f"<style>.course-colours{{{_variables(False)}}}"
    'html[data-theme="dark"] .course-colours,body[data-jp-theme-light="false"] .course-colours'
    f"{{{_variables(True)}}}"
    "@media print{html[data-theme] .course-colours,body[data-jp-theme-light] .course-colours"
    f"{{{_variables(False)}}}}}</style>"
)


def colour(name: str) -> str:
    """The colour as CSS and SVG take it, inside an element of class `course-colours` beside `STYLE`.

    Raises ValueError for a name that the palette does not have.
    """
    if name not in COLOURS:
        raise ValueError(f"no colour {name!r}: the course has {', '.join(COLOURS)}")
    return f"var(--course-{name}, {COLOURS[name][0]})"
