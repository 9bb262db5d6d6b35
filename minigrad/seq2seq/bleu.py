"""BLEU: how much translations share with those of a person (Papineni et al. 2002).

BLEU takes, for n from 1 to 4, the share of the n words in a row (*n-grams*) of the translations that the
reference has too; none counts more often than the reference has it. BLEU is the geometric mean of the four
shares, reduced for translations that are shorter than their references. All counts are summed over the corpus
first; there is one reference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 4  # N in the paper

Words = Sequence[str]


@dataclass(frozen=True)
class Bleu:
    """BLEU and what it is made of: the score from 0 to 100, the precisions p_1 to p_4, brevity penalty, lengths."""

    score: float
    precisions: tuple[float, ...]  # from 0 to 1
    brevity_penalty: float  # BP, 1 if the hypotheses are not shorter
    hypothesis_length: int  # c, in words
    reference_length: int  # r


def bleu(hypotheses: Sequence[Words], references: Sequence[Words]) -> float:
    """BLEU from 0 to 100 of a corpus, each hypothesis with its reference as lists of words.

    0 if no four words in a row are in their reference. Raises ValueError unless there are equally many of
    both, at least one; TypeError for a text in place of its words.
    """
    return bleu_parts(hypotheses, references).score


def bleu_parts(hypotheses: Sequence[Words], references: Sequence[Words]) -> Bleu:
    """BLEU with its parts. Raises as `bleu` does. Source: Papineni et al. (2002), sections 2.1.1 to 2.3."""
    if len(hypotheses) != len(references) or not hypotheses:
        raise ValueError(
            f"expected a reference for each hypothesis, and one at least, got {len(references)} references for "
            f"{len(hypotheses)} hypotheses"
        )
    if any(isinstance(words, str) for words in (*hypotheses, *references)):
        raise TypeError("expected lists of words, got a text: split it")
    precisions = tuple(_precision(hypotheses, references, n) for n in range(1, LONGEST + 1))
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    brevity_penalty = 1.0 if c > r else math.exp(1 - r / c) if c else 0.0
    score = 0.0
    if min(precisions) > 0:
        score = 100 * brevity_penalty * math.exp(sum(map(math.log, precisions)) / LONGEST)
    return Bleu(score, precisions, brevity_penalty, c, r)


def _precision(hypotheses: Sequence[Words], references: Sequence[Words], n: int) -> float:
    """The modified n-gram precision p_n of the corpus; 0 if there is no n-gram."""
    shared = total = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        found, allowed = _ngrams(hypothesis, n), _ngrams(reference, n)
        shared += (found & allowed).total()  # `&` keeps the smaller count of each: clipped
        total += found.total()
    return shared / total if total else 0.0


def _ngrams(words: Words, n: int) -> Counter[tuple[str, ...]]:
    """How often each row of n words stands there."""
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
