"""How `pytest --nbval` compares a notebook's outputs with the stored ones: floats within a tolerance, all else exactly.

nbval compares text, so the seventh digit of a float, which differs between processors' BLAS kernels, would be
as wrong as a wrong word. Here an output is its text with the floats taken out, which must be equal, and the
floats, which must be close: |a - b| ≤ max(rtol · max(|a|, |b|), atol). A number counts as a float when it is
written with a point or an exponent; integers, shapes and words are text. A cell sets its own tolerance by a tag,
`rtol=1e-3` or `atol=0.01`.

Of a drawing its words count, titles, labels and the numbers at its axes; lines and pixels are left out.
"""

from __future__ import annotations

import html
import importlib.util
import math
import os
import re
from itertools import zip_longest
from typing import Any

import pytest

RTOL, ATOL = 1e-5, 1e-9

# 1.5, .5, 2., 1e-7, -3.2e+5; not the 3.11 of version 3.11.7, nor the 1 of x1.5
_FLOAT = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?(?!\w|\.\d)")
_PICTURE = re.compile(
    r"data:image/(?:png|jpeg|svg\+xml);base64,[A-Za-z0-9+/=\s]+"
    r'|<svg class="course-drawing".*?</svg>(?=\s*</)',  # by matplotlib, or by the course where there is none
    re.DOTALL,
)

_TEXT = re.compile(r"<text\b[^>]*>(.*?)</text>", re.DOTALL)


class Output(str):
    """A stored or fresh output; `==` knows which differences are rounding."""

    rtol: float
    atol: float

    def __new__(cls, text: str, rtol: float = RTOL, atol: float = ATOL) -> Output:
        output = super().__new__(cls, text)
        output.rtol, output.atol = rtol, atol
        return output

    def parts(self) -> tuple[str, list[float]]:
        """The text with `#` for each float and single blanks, and the floats."""
        floats = [float(number) for number in _FLOAT.findall(self)]
        text = _FLOAT.sub("#", self)
        text = re.sub(r"[ \t]+", " ", text)  # NumPy pads numbers to one width
        return re.sub(r"([\[(]) ", r"\1", text), floats

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Output):
            return NotImplemented
        text, floats = self.parts()
        other_text, other_floats = other.parts()
        return text == other_text and all(
            math.isclose(a, b, rel_tol=self.rtol, abs_tol=self.atol)
            for a, b in zip(floats, other_floats, strict=True)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def tolerances(metadata: dict[str, Any]) -> dict[str, float]:
    """The tolerances that a cell's tags ask for. Raises ValueError for a tag that is no number."""
    asked = {}
    for tag in metadata.get("tags", []):
        name, equals, value = tag.partition("=")
        if equals and name in ("rtol", "atol"):
            asked[name] = float(value)
    return asked


def comparable(text: str, metadata: dict[str, Any], pictures: bool = True) -> Output:
    """An output as it is compared: of pictures the words alone, with the tolerances of its cell's metadata.

    pictures: whether their words count. In a page another library draws, with ticks of its own.
    """
    return Output(
        _PICTURE.sub(lambda one: f"(a picture: {_words_in(one[0]) if pictures else 'left out'})", text),
        **tolerances(metadata),
    )


def _words_in(picture: str) -> str:
    """The texts of a drawing in SVG, in the order of the alphabet: two versions may draw in another order."""
    texts = ("".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split()) for text in _TEXT.findall(picture))
    return " | ".join(sorted(texts))


def differences(
    stored: list[Any], fresh: list[Any], metadata: dict[str, Any], pictures: bool = True
) -> list[str]:
    """What is different in the outputs that a cell put out elsewhere than in nbval, in words; empty if nothing is.

    As nbval, it compares by stream and by type of content, whatever their order. pictures: as in `comparable`.
    """
    if "nbval-ignore-output" in metadata.get("tags", []):
        return []
    texts, fresh_texts = by_kind(stored), by_kind(fresh)
    found = []
    for kind in sorted(texts.keys() | fresh_texts.keys()):
        pair = [one.get(kind, []) for one in (texts, fresh_texts)]
        one, other = ([comparable(text, metadata, pictures) for text in side] for side in pair)
        if len(one) != len(other) or any(a != b for a, b in zip(one, other, strict=True)):
            found.append(f"{kind}: {line_by_line(''.join(one), ''.join(other), metadata)}")
    return found


def line_by_line(stored: str, fresh: str, metadata: dict[str, Any]) -> str:
    """The first three lines that differ, in words."""
    pairs = zip_longest(stored.split("\n"), fresh.split("\n"), fillvalue="")
    unlike = [
        f"stored {one!r}, now {other!r}"
        for one, other in pairs
        if comparable(one, metadata) != comparable(other, metadata)
    ]
    more = f"; and {len(unlike) - 3} lines more" if len(unlike) > 3 else ""
    return "; ".join(unlike[:3]) + more


def by_kind(outputs: list[Any]) -> dict[str, list[str]]:
    """The texts of a cell's outputs by stream and type of content; pieces of one stream are one text."""
    found: dict[str, list[str]] = {}
    for output in outputs:
        if output["output_type"] == "stream":
            before = "".join(found.get(output["name"], []))
            found[output["name"]] = [before + output["text"]]
        elif output["output_type"] == "error":
            found.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}")
        else:
            for kind, text in output["data"].items():
                if kind not in ("image/png", "image/jpeg", "text/latex"):
                    found.setdefault(kind, []).append(text)
    return found


def compare_numerically() -> None:
    """Teach nbval's cells to compare `Output`s."""
    from nbval.plugin import IPyNbCell

    sanitize = IPyNbCell.sanitize

    def sanitize_and_wrap(cell: Any, output: Any) -> Any:
        text = sanitize(cell, output)
        if not isinstance(text, str):
            return text
        return comparable(text, cell.cell.metadata)

    IPyNbCell.sanitize = sanitize_and_wrap


def start_kernels_twice() -> None:
    """Let nbval start a kernel again where it dies at once: something else has taken one of its ports meanwhile."""
    from nbval import kernel

    start = kernel.start_new_kernel

    def start_or_start_again(*arguments: Any, **options: Any) -> Any:
        try:
            return start(*arguments, **options)
        except RuntimeError:
            return start(*arguments, **options)

    kernel.start_new_kernel = start_or_start_again


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Under --nbval: an exercise that somebody has solved in exercises/ is left out, visibly; so are cells for the
    published model of chapter `published`, where its package is not installed."""
    if not config.getoption("nbval", default=False):
        return
    from bert_course.common.published_model import HOW, PACKAGE
    from book.make.notebooks import holds_answers, read
    from book.make.site import PUBLISHED, tagged

    if importlib.util.find_spec(PACKAGE) is None:
        for path in {item.path for item in items if item.path.parent.name == "book"}:
            without = tagged(read(path), [PUBLISHED])
            for item in items:
                if item.path == path and item.cell.id in without:
                    item.add_marker(pytest.mark.skip(reason=f"the published model is not here: {HOW}"))

    for path in {item.path for item in items if item.path.parent.name == "exercises"}:
        if holds_answers(read(path)):
            reason = f"exercises/{path.name} holds answers: make lab makes copies to work in"
            for item in items:
                if item.path == path:
                    item.add_marker(pytest.mark.skip(reason=reason))


def pytest_configure(config: Any) -> None:
    """Under --nbval only: the comparison, kernels, and no record of exercises in the reader's folder."""
    if config.getoption("nbval", default=False):
        compare_numerically()
        start_kernels_twice()
        os.environ["MINIGRAD_PROGRESS"] = "off"  # kernels inherit it
        os.environ.pop("COURSE_PUBLISHED", None)  # stored outputs are of the package's model
