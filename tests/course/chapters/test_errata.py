"""The list of the sources' mistakes against the notebooks that run them, and what the page computes with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bert_course import check
from bert_course.chapters.errata import ERRATA, SOURCES, Erratum, read
from bert_course.chapters.errata_figures import error_bars
from bert_course.chapters.errata_runs import COUNTS, RUNS, Draw

BOOK = Path(__file__).parents[3] / "book"


# --- The list ---------------------------------------------------------------------------------------------


def run_by(folder: Path) -> dict[str, list[int]]:
    """What each notebook's metadata say it runs, by the chapter: {"one_head": [1, 41], "positions": […]}."""
    paths = sorted(folder.glob("*.ipynb"))
    return {path.stem: errata_of(json.loads(path.read_text(encoding="utf-8"))) for path in paths}


def errata_of(notebook: dict[str, Any]) -> list[int]:
    errata: list[int] = notebook["metadata"].get("course", {}).get("errata", [])
    return errata


def an_erratum(number: int, *chapters: str, **more: Any) -> Erratum:
    facts = {
        "says": "a",
        "right": "b",
        "primary": "c",
        "kind": "silent",
        "evidence": "run",
        "whose": "text",
        **more,
    }
    return Erratum(number=number, chapters=list(chapters), **facts)


def disagreements(pages: dict[str, list[int]], errata: tuple[Erratum, ...] = ERRATA) -> list[str]:
    """Where the list and the pages that are there differ; of a chapter that is not written yet nothing is asked."""
    found = []
    for erratum in errata:
        for chapter, listed in pages.items():
            if (erratum.number in listed) != (chapter in erratum.chapters):
                says = "runs" if erratum.number in listed else "does not run"
                found.append(f"{chapter} {says} erratum {erratum.number}; the list has {erratum.chapters}")
    return found


def test_all_are_listed_once_and_in_order():
    numbers = [erratum.number for erratum in ERRATA]
    assert numbers == sorted(set(numbers))
    assert len({erratum.says for erratum in ERRATA}) == len(ERRATA) == 50


# Of charges that did not hold: another one gets a number of its own, after the last.
GONE = {9, 13, 19, 21, 22, 25, 28, 29, 33, 34, 45, 46, 51, 52, 61, 62, 64, 65, 66, 69, 71}


def test_no_withdrawn_number_is_used_again():
    assert not GONE & ({erratum.number for erratum in ERRATA} | set(RUNS) | set(COUNTS))


@pytest.mark.parametrize(
    ("number", "source"),
    [
        (1, "formulas"), (15, "formulas"), (16, "article"), (38, "article"), (39, "walk-through"), (48, "walk-through"),
        (49, "notes"), (53, "notes"), (54, "essay"), (64, "essay"), (65, "between them"), (71, "between them"),
    ],
)  # fmt: skip
def test_the_sources_have_their_numbers(number, source):
    assert an_erratum(number, "one_head").source == source
    assert {erratum.source for erratum in ERRATA} == set(SOURCES)


ENTRY = """
[[erratum]]
number = 1
says = "a"
right = "b"
primary = "c"
kind = "silent"
evidence = "run"
whose = "text"
chapters = ["one_head"]
"""


def test_an_entry_is_read():
    assert read(ENTRY) == (an_erratum(1, "one_head"),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('primary = "c"', "", "erratum 1: .*primary"),
        ('"silent"', '"quiet"', "kind must be one of parameters, silent, .*, got 'quiet'"),
        ('"run"', '"seen"', "evidence must be one of run, count, quote, got 'seen'"),
        ('"text"', '"mine"', "whose must be one of copy, text, paper, got 'mine'"),
        ('["one_head"]', "[]", "erratum 1: chapters must not be empty"),
        ('right = "b"', 'right = ""', "erratum 1: right must not be empty"),
        ('["one_head"]', '["7"]', "erratum 1: there is no chapter '7'"),
    ],
)
def test_a_bad_entry_is_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        read(ENTRY.replace(old, new))


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda erratum: str(erratum.number))
def test_the_check_that_catches_it_knows_it(erratum):
    """That a check tells each wrong answer that it knows the answer's sentence, test_banks.py holds."""
    found = erratum.check()
    assert (found is None) == (erratum.caught_by is None)
    if found is not None:
        exercise, mistake = found
        assert getattr(check, erratum.caught_by[0]) is exercise
        assert mistake.edits or mistake.body


@pytest.mark.parametrize(
    ("caught_by", "message"),
    [
        (("attennd", "no-scale"), "no check.attennd"),
        (("attend", "blue-scores"), r"check.attend knows no mistake \[blue-scores\]; its ids: "),
    ],
)
def test_a_check_that_is_not_there_is_an_error(caught_by, message):
    with pytest.raises(LookupError, match=f"erratum 3: .*{message}"):
        an_erratum(3, "one_head", caught_by=caught_by).check()


def test_the_list_agrees_with_the_notebooks():
    pages = run_by(BOOK)
    assert pages["errata"]
    complaints = disagreements(pages)
    assert not complaints, "\n".join(complaints)


def test_a_disagreement_is_found():
    two = (an_erratum(1, "one_head", "encoder"), an_erratum(2, "masking"))
    assert disagreements({"one_head": [1]}, two) == []  # the other two are not there
    assert disagreements({"one_head": [1], "encoder": []}, two)
    assert disagreements({"one_head": [1], "many_heads": [1]}, two)
    assert disagreements({"one_head": [1], "many_heads": [2]}, two)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The page of all errata."""
    notebook: dict[str, Any] = json.loads((BOOK / "errata.ipynb").read_text(encoding="utf-8"))
    return notebook


def targets_of(*cells: dict[str, Any]) -> list[int]:
    """The errata that have a target in these cells, `(erratum-16)=`."""
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return [int(number) for number in re.findall(r"^\(erratum-(\d+)\)=$", "\n".join(texts), re.MULTILINE)]


def test_each_erratum_that_the_page_runs_has_a_target(page):
    """To which the site links "erratum 16" on any page."""
    assert sorted(targets_of(*page["cells"])) == sorted(errata_of(page))


# --- Each formula beside the right one --------------------------------------------------------------------


def test_a_quote_is_never_dressed_up_as_a_run():
    evidence = {erratum.number: erratum.evidence for erratum in ERRATA}
    assert {evidence[number] for number in RUNS} == {"run"}
    assert {evidence[number] for number in COUNTS} == {"run", "count"}
    assert not set(RUNS) & set(COUNTS)


@pytest.fixture(scope="module")
def one_draw() -> Draw:
    return Draw(0)


def test_the_draws_attention_is_that_of_the_library(one_draw):
    """Against the library's own attention with the same weights."""
    from minigrad import Tensor, ops

    d = one_draw
    q, k, v = (Tensor((d.X @ W).reshape(24, 4, 32).swapaxes(0, 1).copy()) for W in (d.W_Q, d.W_K, d.W_V))
    hidden = np.where(np.arange(24) < 16, 0.0, -1e30)
    for mask, attention in ((None, d.attention), (hidden, d.from_scores(d.S + d.hidden_after(16)))):
        z = ops.scaled_dot_product_attention(q, k, v, None if mask is None else Tensor(mask)).numpy()
        np.testing.assert_allclose(attention, z.swapaxes(0, 1).reshape(24, 128) @ d.W_O, atol=1e-12)


# --- What it draws ----------------------------------------------------------------------------------------


def test_the_largest_error_is_on_top_and_each_mistake_has_a_colour(axes_of):
    axes = axes_of(error_bars, {"small": (0.25, "paper"), "large": (1.5, "copy")})
    assert [bar.get_width() for bar in axes.patches] == [1.5, 0.25]
    to_rgba = pytest.importorskip("matplotlib.colors").to_rgba
    colours = {text.get_text(): to_rgba(text.get_color()) for text in axes.texts}
    assert [bar.get_facecolor() for bar in axes.patches] == [colours["our copy's"], colours["a paper's"]]
