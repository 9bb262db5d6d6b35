"""What chapter `mlm` shows: words of known probability, the lottery in both languages, the test of counts, a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from browsers import opened

pytest.importorskip("matplotlib")
from bert_course.chapters import mlm
from bert_course.chapters.mlm_lottery import FATES, Lottery, Rolls, mask_lottery
from bert_course.common.small_model import small_model
from minigrad.bert.data import mask_tokens

TOKENS = [
    "[CLS]",
    "the",
    "<b>",
    "file",
    "is",
    "opened",
    "for",
    "reading",
    "and",
    "then",
    "closed",
    ".",
    "[SEP]",
]
PIECES = ["[UNK]", "a&b", "lock", "##s", "thread"]


# --- The ring ----------------------------------------------------------------------------------------------


@pytest.mark.no_arrays
def test_the_probabilities_are_those_of_the_texts():
    rng = np.random.default_rng(0)
    texts = mlm.ring_texts(200_000, rng)
    assert texts.shape == (200_000, mlm.LENGTH)
    assert (texts.min(), texts.max()) == (0, mlm.WORDS - 1)
    after_next = (
        texts[:, 6] - texts[:, 4]
    ) % mlm.WORDS == 2  # both steps were to the next word, or happen to fit
    between = texts[after_next]
    p = mlm.ring_probabilities(between, np.full(len(between), 5))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    middle = (between[:, 4] + 1) % mlm.WORDS
    said = p[np.arange(len(between)), middle].mean()
    assert abs((between[:, 5] == middle).mean() - said) < 0.005
    assert 0.99 < said < 1


@pytest.mark.no_arrays
def test_the_best_guess_is_what_counting_gives():
    """Draw a true word and what is shown of it many times, and count."""
    rng, shares = np.random.default_rng(1), mlm.SCHEMES["80/10/10"]
    p = np.array([0.6, 0.3, 0.08, 0.02])
    true = rng.choice(4, 2_000_000, p=p)
    fate = rng.choice(3, len(true), p=shares)
    shown = np.where(fate == 2, rng.integers(0, 4, len(true)), true)
    for seen in range(4):
        counted = np.bincount(true[(fate > 0) & (shown == seen)], minlength=4)
        best = mlm.ideal(p[None].copy(), np.array([seen]), shares, 4)[0]
        np.testing.assert_allclose(counted / counted.sum(), best, atol=0.006)


@pytest.mark.no_arrays
@pytest.mark.parametrize("scheme", mlm.SCHEMES)
def test_words_are_hidden_in_the_shares(scheme):
    shares = mlm.SCHEMES[scheme]
    ids = np.random.default_rng(0).integers(0, 1000, (4000, 12))
    read, labels = mlm.hide(ids, shares, 1000, 1000, np.random.default_rng(1))
    chosen = labels != -100
    assert chosen.any(axis=1).all()
    np.testing.assert_array_equal(labels[chosen], ids[chosen])
    np.testing.assert_array_equal(read[~chosen], ids[~chosen])
    found = [(read[chosen] == 1000).mean(), (read[chosen] == ids[chosen]).mean()]
    np.testing.assert_allclose(found, shares[:2], atol=0.01)


def test_training_on_the_ring_learns():
    before = mlm.score_on_the_ring(mlm.train_on_the_ring((0.8, 0.1, 0.1), 0, 0), 300)
    after = mlm.score_on_the_ring(mlm.train_on_the_ring((0.8, 0.1, 0.1), 0, 120), 300)
    assert before["hidden"] < 0.1
    assert after["hidden"] > 0.2


# --- The lottery -------------------------------------------------------------------------------------------


def test_the_lottery_draws_like_the_library():
    """The same number of tokens, never a special one, each place as often, and the same shares."""
    lottery, tokenizer = Lottery(TOKENS, PIECES), small_model()[1]
    rolls, draws = Rolls(7), 20_000
    places, fates = np.zeros(len(TOKENS)), dict.fromkeys(FATES, 0)
    for _ in range(draws):
        for place, (fate, _) in lottery.draw(rolls).items():
            places[place] += 1
            fates[fate] += 1
    special = np.array([token in ("[CLS]", "[SEP]") for token in TOKENS])
    ids = np.where(special, tokenizer.cls_token_id, 100 + np.arange(len(TOKENS)))
    shown, labels = mask_tokens(np.tile(ids, (draws, 1)), tokenizer, np.random.default_rng(0))
    chosen = labels != -100
    np.testing.assert_allclose(places / draws, chosen.mean(axis=0), atol=0.015)
    hidden, kept = (shown == tokenizer.mask_token_id) & chosen, (shown == labels) & chosen
    library = np.array([hidden.sum(), (chosen & ~hidden & ~kept).sum(), kept.sum()])
    np.testing.assert_allclose(np.array(list(fates.values())) / draws, library / draws, atol=0.015)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """The lottery on a page, and what went wrong there."""
    with opened(browser, mask_lottery(TOKENS, PIECES)._repr_html_()) as shown:
        yield shown


def shows(page: Any, draws: int) -> None:
    """The page has the tokens, and the counts, of Python's draw of this number."""
    lottery, counts = Lottery(TOKENS, PIECES), dict.fromkeys(FATES, 0)
    rolls, times, drawn = Rolls(lottery.seed), [0] * len(TOKENS), {}
    for _ in range(draws):
        drawn = lottery.draw(rolls)
        for place, (fate, _) in drawn.items():
            counts[fate] += 1
            times[place] += 1
    expected = [drawn.get(i, ("", token))[1] for i, token in enumerate(TOKENS)]
    assert page.locator(".chip .reads").all_inner_texts() == expected
    for fate, count in counts.items():
        row = page.locator(f'[data-row="{fate}"] td').all_inner_texts()
        assert row[0] == f"{count:,}"
        assert row[1] == f"{100 * count / sum(counts.values()):.1f} %"
    assert page.locator(".chip .times").all_inner_texts() == [
        "never" if token in ("[CLS]", "[SEP]") else str(n) for token, n in zip(TOKENS, times, strict=True)
    ]


@pytest.mark.no_arrays
def test_both_languages_draw_the_same(page):
    shows(page, 1)
    page.get_by_role("button", name="draw", exact=True).click()
    shows(page, 2)
    page.get_by_role("button", name="draw 100 times").focus()
    page.keyboard.press("Enter")
    shows(page, 102)
    page.get_by_role("button", name="start again").click()
    shows(page, 1)
