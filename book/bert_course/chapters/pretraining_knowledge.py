"""What the chapter asks of models: the probabilities of hidden words, what is left to learn, and what context gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from bert_course.common.softmax import softmax
from minigrad import no_grad
from minigrad.bert.story_scores import log_probabilities
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import Pair, Stories
from minigrad.text.sentences import IS_NEXT
from minigrad.text.tokenizer import WordPieceTokenizer


def words_known(model: Any, stories: Stories, pair: Pair) -> np.ndarray:
    """The probabilities (words,) that a model gives to the words of a pair, each hidden in turn."""
    log_p, _ = log_probabilities(model, stories, pair)
    return np.exp(log_p[np.arange(len(log_p)), [stories.id(word.text) for word in pair.words]])


@dataclass(frozen=True)
class Left:
    """What a model has yet to learn of one hidden word: the divergence, in nats, of its guess from the exact one.

    p, exact: the probability of each word of the vocabulary, of the model and exactly, (V,) each. is_next: what the
    model, with the word hidden, gives to "B is next". copy, best_copy: for the slots `noun` and `noun again`, the
    probability of the noun of the pair's other half, of the model and exactly; 0 without such a noun.
    """

    slot: str
    next_sentence_label: int
    p: np.ndarray
    exact: np.ndarray
    is_next: float
    copy: float = 0.0
    best_copy: float = 0.0

    @property
    def nats(self) -> float:
        """The divergence."""
        sure = self.exact > 0
        return float((self.exact[sure] * np.log(self.exact[sure] / self.p[sure])).sum())

    @property
    def in_copy(self) -> float:
        """The part of `nats` in the choice, copy or not: the divergence if all other words count as one."""
        pairs = ((self.best_copy, self.copy), (1 - self.best_copy, 1 - self.copy))
        return sum(best * log(best / mine) for best, mine in pairs if best)


def left_over(model: Any, stories: Stories, pairs: Sequence[Pair], scorer: Scorer) -> list[Left]:
    """What is left to learn of each word of the pairs, hidden in turn."""
    found = []
    for pair in pairs:
        guesses = scorer.hidden_words(pair.text_a, pair.text_b)
        in_a = sum(map(len, pair.text_a))
        nouns = {word.slot: word.text for word in pair.words if word.slot in ("noun", "noun again")}
        log_p, log_next = log_probabilities(model, stories, pair)
        for place, (word, guess, p) in enumerate(zip(pair.words, guesses, np.exp(log_p), strict=True)):
            exact = np.zeros_like(p)
            exact[[stories.id(one) for one in guess]] = list(guess.values())
            copied: tuple[float, ...] = ()
            other = nouns.get({"noun": "noun again", "noun again": "noun"}.get(word.slot, ""))
            if other is not None and (word.slot == "noun") == (place < in_a):
                copied = p[stories.id(other)], exact[stories.id(other)]
            is_next = float(np.exp(log_next[place, IS_NEXT]))
            found.append(Left(word.slot, pair.next_sentence_label, p, exact, is_next, *copied))
    return found


CONTEXTS = ("as written", "the same pieces, shuffled", "pieces of other sentences", "no pieces, [MASK] only")


def losses_by_context(
    model: Any, tokenizer: WordPieceTokenizer, texts: Sequence[str], length: int = 64, seed: int = 0
) -> dict[str, np.ndarray]:
    """The losses, in nats, of pieces hidden one at a time, by what stands around them: a name of CONTEXTS.

    Of each text, three pieces at random are hidden; longer texts are cut to `length` tokens, [CLS] and [SEP] included.
    The pieces of other sentences are drawn at random from all the other texts. Raises ValueError for fewer than two
    texts.
    """
    if len(texts) < 2:
        raise ValueError(f"pieces of other sentences need at least 2 texts, got {len(texts)}")
    rng = np.random.default_rng(seed)
    found: dict[str, list[float]] = {name: [] for name in CONTEXTS}
    encoded = [np.array(tokenizer.encode(text, max_length=length).input_ids) for text in texts]  # (L,) each
    for number, ids in enumerate(encoded):
        inner = np.arange(1, len(ids) - 1)
        elsewhere = np.concatenate([other[1:-1] for other in encoded[:number] + encoded[number + 1 :]])
        for place in rng.permutation(inner)[:3]:
            others = inner[inner != place]
            rows = np.tile(ids, (len(CONTEXTS), 1))  # (4, L)
            rows[1, others] = ids[rng.permutation(others)]
            rows[2, others] = rng.choice(elsewhere, len(others))
            rows[3, others] = tokenizer.mask_token_id
            rows[:, place] = tokenizer.mask_token_id
            with no_grad():
                p = softmax(model(rows).prediction_logits.numpy()[:, place].astype(float))
            for name, loss in zip(CONTEXTS, -np.log(p[:, ids[place]]), strict=True):
                found[name].append(float(loss))
    return {name: np.array(losses) for name, losses in found.items()}
