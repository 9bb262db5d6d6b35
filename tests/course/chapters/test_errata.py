"""The list of the sources' mistakes against the notebooks that run them, and what the page computes with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigrad.course import check, contents
from minigrad.course.chapters.errata import (
    ERRATA,
    EVIDENCE,
    KINDS,
    SOURCES,
    STANDING,
    WHOSE,
    WITHDRAWN,
    Erratum,
    read,
)
from minigrad.course.chapters.errata_figures import TONES, error_bars
from minigrad.course.chapters.errata_runs import (
    COUNTS,
    RUNS,
    Draw,
    Small,
    drawn,
    random_layers,
    random_tokens,
)

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
    assert [erratum.number for erratum in ERRATA] == list(range(1, 72))
    assert len({erratum.says for erratum in ERRATA}) == len(ERRATA) == contents.ERRATA


# A number that was withdrawn stays so: another charge gets a number of its own, after the last.
GONE = {9, 13, 19, 21, 22, 25, 28, 29, 33, 34, 45, 46, 51, 52, 61, 62, 64, 65, 66, 69, 71}


def test_no_withdrawn_number_is_used_again():
    assert {erratum.number for erratum in WITHDRAWN} >= GONE


def test_what_is_withdrawn_has_a_reason_and_counts_nowhere():
    assert sorted([*STANDING, *WITHDRAWN], key=lambda erratum: erratum.number) == list(ERRATA)
    assert not any(erratum.withdrawn for erratum in STANDING)
    for erratum in WITHDRAWN:
        facts = {name: getattr(erratum, name) for name in ("number", "says", "chapters", "withdrawn")}
        assert erratum == Erratum(**facts)
        assert erratum.withdrawn.strip()
        assert erratum.chapters == ["errata"]
    gone = {erratum.number for erratum in WITHDRAWN}
    assert not gone & (set(RUNS) | set(COUNTS))


@pytest.mark.parametrize(
    ("number", "source"),
    [
        (1, "formulas"), (15, "formulas"), (16, "article"), (38, "article"), (39, "walk-through"), (48, "walk-through"),
        (49, "notes"), (53, "notes"), (54, "essay"), (64, "essay"), (65, "between them"), (71, "between them"),
    ],
)  # fmt: skip
def test_the_sources_have_their_numbers(number, source):
    assert ERRATA[number - 1].source == source
    assert {erratum.source for erratum in ERRATA} == set(SOURCES)


def test_each_kind_evidence_and_origin_occurs():
    assert {erratum.kind for erratum in STANDING} == set(KINDS)
    assert {erratum.evidence for erratum in STANDING} == set(EVIDENCE)
    assert {erratum.whose for erratum in STANDING} == set(WHOSE)


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


NO_CHARGE = """
[[erratum]]
number = 2
says = "a"
withdrawn = "it is right: chapter `one_head`"
chapters = ["errata"]
"""


def test_an_entry_is_read():
    withdrawn = Erratum(number=2, says="a", withdrawn="it is right: chapter 7", chapters=["errata"])
    assert read(ENTRY + NO_CHARGE) == (an_erratum(1, "one_head"), withdrawn)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('primary = "c"', "", "erratum 1: .*primary"),
        ('primary = "c"', 'primary = "c"\ncolour = "red"', "erratum 1: .*colour"),
        ('"silent"', '"quiet"', "kind must be one of parameters, silent, .*, got 'quiet'"),
        ('"run"', '"seen"', "evidence must be one of run, count, quote, got 'seen'"),
        ('"text"', '"mine"', "whose must be one of copy, text, paper, got 'mine'"),
        ('["one_head"]', "[]", "erratum 1: it needs a chapter"),
        ('["one_head"]', '["7"]', "erratum 1: there is no chapter '7'"),
    ],
)
def test_a_bad_entry_is_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        read(ENTRY.replace(old, new))


REASON = 'withdrawn = "it is right: chapter `one_head`"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            REASON,
            "",
            "erratum 2: it lacks right, primary, kind, evidence, whose, or `withdrawn` with the reason",
        ),
        (REASON, 'withdrawn = " "', "erratum 2: it lacks right, .* or `withdrawn`"),
        (
            REASON,
            f'{REASON}\nkind = "gap"\ncomputes = "b"',
            "erratum 2: it is withdrawn, and cannot have computes, kind",
        ),
        ("`one_head`", "`two_heads`", "erratum 2: there is no chapter 'two_heads'"),
        ('says = "a"', "", "erratum 2: .*says"),
        ('chapters = ["errata"]', "", "erratum 2: .*chapters"),
        ("number = 2", "", "erratum without a number: .*number"),
    ],
)
def test_a_bad_withdrawal_is_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        read(NO_CHARGE.replace(old, new))


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda erratum: str(erratum.number))
def test_the_check_that_catches_it_knows_it(erratum):
    """That a check tells each wrong answer that it knows the answer's sentence, test_banks.py holds."""
    found = erratum.check()
    assert (found is None) == (erratum.caught_by is None)
    if found is not None:
        exercise, slip = found
        assert getattr(check, erratum.caught_by[0]) is exercise
        assert slip.edits or slip.body


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


def printed(cell: dict[str, Any]) -> str:
    """What a code cell shows, as plain text."""
    return "".join(cell["outputs"][-1]["data"]["text/plain"])


def test_each_erratum_that_the_page_runs_has_a_target(page):
    """To which the site links "erratum 16" on any page."""
    assert sorted(targets_of(*page["cells"])) == sorted(errata_of(page))


def test_the_list_has_all_of_the_withdrawn(page):
    """Each has its target above the heading, and its row in the last list below."""
    cells = {cell["id"]: cell for cell in page["cells"]}
    gone = [erratum.number for erratum in WITHDRAWN]
    assert targets_of(cells["errata-list"]) == gone
    rows = printed(cells["errata-all"]).split("\n\n")[-1].split("\n")[2:]
    assert [int(row.split()[0]) for row in rows] == gone
    for row, erratum in zip(rows, WITHDRAWN, strict=True):
        assert erratum.says in row
        assert row.endswith(erratum.withdrawn)


def test_the_list_has_all_that_stand(page):
    cells = {cell["id"]: cell for cell in page["cells"]}
    listed = re.findall(r"^(\d+)\. ", printed(cells["errata-all"]), re.MULTILINE)
    assert [int(number) for number in listed] == [erratum.number for erratum in STANDING]


@pytest.mark.parametrize(
    ("chapters", "where"),
    [
        (("errata",), "erratum 1"),
        (("positions",), "chapter 29"),
        (("encoder", "one_head"), "chapters 7 and 12"),  # in the course's order
        (("finetuning", "errata"), "chapter 16, erratum 1"),
    ],
)
def test_where(chapters, where):
    assert an_erratum(1, *chapters).where == where


# --- Layers with random weights ---------------------------------------------------------------------------


def test_tokens_have_the_size_that_layer_norm_leaves():
    x = random_tokens(0)
    assert (x.shape, x.dtype) == ((24, 128), np.float64)
    np.testing.assert_allclose(x.mean(axis=-1), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(axis=-1), 1)


def test_layers_hang_on_their_seed_alone():
    x = random_tokens(0)
    for part in (0, 1):
        first, same, other = (random_layers(seed, 2)[1][part](x) for seed in (0, 0, 1))
        assert first.shape == x.shape
        np.testing.assert_array_equal(first, same)
        assert np.abs(first - other).max() > 1e-3


def test_attention_mixes_tokens_and_the_feed_forward_network_does_not():
    attention, feed_forward = random_layers(0, 1)[0]
    x = random_tokens(0)
    other = x.copy()
    other[3] = random_tokens(1)[3]
    moved = [np.abs(f(other) - f(x)).max(axis=-1) > 1e-9 for f in (attention, feed_forward)]
    assert moved[0].all()
    assert moved[1].tolist() == [i == 3 for i in range(24)]


def test_attention_is_that_of_the_formula(monkeypatch):
    """With W of ones on the diagonal every head attends to slices of x itself."""

    class Ones:
        def standard_normal(self, shape):
            return np.eye(*shape) * np.sqrt(shape[0])

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Ones())
    (attention, _), *_ = random_layers(0, 1, d_model=6)
    x = np.linspace(-1, 2, 24).reshape(4, 6) ** 2
    expected = []
    for head in (x[:, :3], x[:, 3:]):
        weights = np.exp(head @ head.T / np.sqrt(3))
        expected.append(weights / weights.sum(axis=-1, keepdims=True) @ head)
    np.testing.assert_allclose(attention(x), np.concatenate(expected, axis=-1))


def test_weights_keep_the_size():
    weights = drawn(np.random.default_rng(0), 128, 512)
    np.testing.assert_allclose((random_tokens(0) @ weights).std(), 1, rtol=0.05)


# --- Each formula beside the right one --------------------------------------------------------------------


def test_a_quote_is_never_dressed_up_as_a_run():
    evidence = {erratum.number: erratum.evidence for erratum in ERRATA}
    assert {evidence[number] for number in RUNS} == {"run"}
    assert {evidence[number] for number in COUNTS} == {"run", "count"}
    assert not set(RUNS) & set(COUNTS)


@pytest.fixture(scope="module")
def one_draw() -> Draw:
    return Draw(0)


@pytest.mark.parametrize("number", sorted(RUNS))
def test_a_wrong_formula_gives_something_else_of_the_same_shape(number, one_draw):
    wrong, right = RUNS[number](one_draw)
    assert wrong.shape == right.shape
    assert wrong.dtype == right.dtype == np.float64
    assert 0.1 < np.sqrt(np.mean((wrong - right) ** 2) / np.mean(right**2)) < 3


def test_the_draws_attention_is_that_of_the_library(one_draw):
    """Against the library's own attention with the same weights."""
    from minigrad import Tensor, ops

    d = one_draw
    q, k, v = (Tensor((d.X @ W).reshape(24, 4, 32).swapaxes(0, 1).copy()) for W in (d.W_Q, d.W_K, d.W_V))
    hidden = np.where(np.arange(24) < 16, 0.0, -1e30)
    for mask, attention in ((None, d.attention), (hidden, d.from_scores(d.S + d.hidden_after(16)))):
        z = ops.scaled_dot_product_attention(q, k, v, None if mask is None else Tensor(mask)).numpy()
        np.testing.assert_allclose(attention, z.swapaxes(0, 1).reshape(24, 128) @ d.W_O, atol=1e-12)


def test_what_is_counted():
    """Numbers of the list of the sources' mistakes, made by hand."""
    assert COUNTS[15]() == "7,155,456 parameters missing"
    biases, norms = 12 * 3 * 768 + 768, (1 + 2 * 12) * 2 * 768
    assert COUNTS[8]() == f"{biases + norms:,} parameters"


# --- Chapter `start`'s BERT -------------------------------------------------------------------------------


def test_the_small_model_without_something():
    whole, gains = Small(), Small(lambda name: name.endswith("LayerNorm.weight"))
    assert (whole.changed, gains.changed) == (0, 6 * 128)  # embeddings, two layers of two, the head's
    assert all(
        (p.numpy() == 1).all() for n, p in gains.model.named_parameters() if n.endswith("LayerNorm.weight")
    )
    biases = Small(lambda name: name.endswith("key.bias"))
    assert all((p.numpy() == 0).all() for n, p in biases.model.named_parameters() if n.endswith("key.bias"))
    np.testing.assert_allclose(biases.pooled(), whole.pooled(), atol=1e-12)  # softmax does not see them
    assert whole.pooled().shape == (12, 128)
    assert 2 < whole.loss() < 3 < gains.loss()


# --- What it draws ----------------------------------------------------------------------------------------


def test_the_largest_error_is_on_top_and_each_slip_has_a_colour(axes_of):
    assert TONES.keys() == WHOSE.keys()
    errors = {"small": (0.25, "paper"), "large": (1.5, "copy")}
    picture = error_bars(errors)
    assert repr(picture).endswith(": large 1.50, small 0.25")
    words = ("small", "large", "as bad as zeros", "a paper's", "our copy's")
    assert all(f">{word}<" in picture.svg for word in words)
    axes = axes_of(error_bars, errors)
    assert [bar.get_width() for bar in axes.patches] == [1.5, 0.25]
    to_rgba = pytest.importorskip("matplotlib.colors").to_rgba
    colours = {text.get_text(): to_rgba(text.get_color()) for text in axes.texts}
    assert [bar.get_facecolor() for bar in axes.patches] == [colours["our copy's"], colours["a paper's"]]
    assert list(axes.lines[0].get_xdata()) == [1, 1]
