"""The colours of everything that is drawn: one name for each thing, the same in every figure, widget and page.

Okabe & Ito's hues, which the colour-blind can tell apart, dark enough for text on white (4.5 : 1 and more, WCAG 2.2,
1.4.3) and lighter ones for a dark page. A query is blue on every page, a key orange, a value green.

As CSS variables they follow a page from light to dark.
"""

from __future__ import annotations

# name: on a light page, on a dark page
COLOURS: dict[str, tuple[str, str]] = {
    "ink": ("#24292f", "#e6edf3"),
    "grid": ("#d8dee4", "#3d444d"),
    "first": ("#0072b2", "#56b4e9"),  # what a figure compares: first, second, third
    "second": ("#b94a00", "#f0a35e"),
    "third": ("#595959", "#b0b0b0"),
    "token": ("#57606a", "#b1bac4"),  # what attention is drawn with
    "query": ("#0a6ea8", "#58b2e6"),
    "key": ("#a85400", "#eda45c"),
    "value": ("#00775a", "#4fcfa5"),
    "weight": ("#6b4fa0", "#b9a3e8"),
    "gradient": ("#a3367f", "#e59ac9"),  # what flows back
    "right": ("#1a7f37", "#56d364"),  # what a check says
    "wrong": ("#c2252e", "#ff8f88"),
}

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
