"""Attention scores, held against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.seq2seq.config import ATTENTION
from minigrad.seq2seq.scores import SCORES, Score

FORMULAS = {
    "dot": lambda h, s, p: np.einsum("bti,bsi->bts", h, s),
    "general": lambda h, s, p: np.einsum("bti,ij,bsj->bts", h, p["W_a"], s),
    "additive": lambda h, s, p: np.einsum(
        "i,btsi->bts",
        p["v"],
        np.tanh(
            np.einsum("ij,btj->bti", p["W_a"], h)[:, :, None] + np.einsum("ij,bsj->bsi", p["U_a"], s)[:, None]
        ),
    ),
}

each_score = pytest.mark.parametrize("name", SCORES)


@each_score
def test_scores_are_their_formulas(name, leaf):
    score = SCORES[name](5).astype("float64")
    h, states = leaf(2, 3, 5), leaf(2, 4, 5)
    parameters = {name: parameter.numpy() for name, parameter in score.named_parameters()}
    expected = FORMULAS[name](h.numpy(), states.numpy(), parameters)
    np.testing.assert_allclose(score(h, states).numpy(), expected, rtol=0, atol=1e-13)


@each_score
def test_other_shapes_are_named(name, leaf):
    score = SCORES[name](4).astype("float64")
    for h, states in (
        ((2, 3, 4), (2, 5, 3)),
        ((2, 3, 3), (2, 5, 4)),
        ((2, 3, 4), (1, 5, 4)),
        ((2, 4), (2, 5, 4)),
    ):
        with pytest.raises(
            ValueError, match=r"scores: expected h \(B, T, 4\) and states \(B, S, 4\), got \("
        ):
            score(leaf(*h), leaf(*states))


def test_scores_are_those_that_a_config_may_name():
    assert set(SCORES) == set(ATTENTION) - {"none"}


def test_a_score_without_a_formula_says_so(leaf):
    with pytest.raises(NotImplementedError, match=r"Score has no compare\(\)"):
        Score(4)(leaf(1, 1, 4), leaf(1, 1, 4))
