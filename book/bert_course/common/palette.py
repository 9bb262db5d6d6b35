"""The course's colours (`minigrad/colours.py`) as CSS variables, which follow a page from light to dark."""

from __future__ import annotations

from minigrad.colours import COLOURS

_PAIRS = ";".join(f"--course-{name}:light-dark({light},{dark})" for name, (light, dark) in COLOURS.items())

# A page says which scheme it has: the book on <html>, JupyterLab on <body>. Elsewhere, and on paper, it is light.
STYLE = (
    f"<style>.course-colours{{color-scheme:light;{_PAIRS}}}@media screen"
    '{:is(html[data-theme="dark"],body[data-jp-theme-light="false"]) .course-colours{color-scheme:dark}}</style>'
)


def colour(name: str) -> str:
    """The colour as CSS and SVG take it, inside an element of class `course-colours` beside `STYLE`.

    Raises ValueError for a name that the palette does not have.
    """
    if name not in COLOURS:
        raise ValueError(f"no colour {name!r}: the course has {', '.join(COLOURS)}")
    return f"var(--course-{name})"
