"""Tasks on light stories whose answers the grammar knows, as `finetuning` and `modern` fine-tune on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_course.common.light_stories import LENGTH
from minigrad.bert.config import IGNORED
from minigrad.bert.features import Features, pad
from minigrad.bert.tasks import (
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from minigrad.stories.grammar import Story
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import HALF, labels, questions, story_tokenizer, tell_stories
from minigrad.tensor import no_grad

LIGHT = SETTINGS["light"]
TOKENIZER = story_tokenizer(LIGHT)


def _encoded(a: str, b: str, **targets: Any) -> Features:
    """[CLS] a [SEP] b [SEP] as ids."""
    encoding = TOKENIZER.encode(a, b)
    if len(encoding) > LENGTH:
        raise ValueError(f"{a!r} and {b!r} have {len(encoding)} tokens, but {LENGTH} positions are trained")
    return Features(encoding.input_ids, encoding.token_type_ids, targets)


def _halves(sentences: Sequence[str]) -> tuple[str, str]:
    return " ".join(sentences[:HALF]), " ".join(sentences[HALF:])


def _stories(seed: int) -> Iterator[Story]:
    return tell_stories(LIGHT, 2**20, seed)


def _classified(label: str, count: int, seed: int) -> list[Features]:
    return [
        _encoded(*_halves(story.texts()), labels=labels(story)[label])
        for story, _ in zip(_stories(seed), range(count), strict=False)
    ]


def holder_examples(count: int, seed: int) -> list[Features]:
    """A story; label 1 if a man has the thing at the end, 0 if a woman."""
    return _classified("man_has_it", count, seed)


def moved_examples(count: int, seed: int) -> list[Features]:
    """A story; label 1 if the thing has changed hands. One verb says it: gives and sends, or hides and keeps."""
    return _classified("moved", count, seed)


def pair_examples(count: int, seed: int) -> list[Features]:
    """A: three sentences of a story; B: the fourth, untouched (0) or, in every other one, with the wrong person (1).

    Wrong is the other of the two people, where B says who uses the thing or whose it is.
    """
    found: list[Features] = []
    stories = _stories(seed)
    while len(found) < count:
        story = next(stories)
        *before, last = story.sentences
        rivals = [
            (at, word.rival) for at, word in enumerate(last) if word.slot == "who has it" and word.rival
        ]
        if rivals:
            words = [word.text for word in last]
            wrong = len(found) % 2
            if wrong:
                at, rival = rivals[0]
                words[at] = rival
            found.append(_encoded(" ".join(story.texts()[: len(before)]), " ".join(words), labels=wrong))
    return found


def question_examples(count: int, seed: int) -> list[Features]:
    """A question and a story in which the answer stands: where the people are, how many things, and who has them."""
    found: list[Features] = []
    stories, asked_in_turn = _stories(seed), ("where", "how many", "who")
    while len(found) < count:
        story = next(stories)
        begins = asked_in_turn[len(found) % len(asked_in_turn)]
        asked = next(one for one in questions(story) if one.text.startswith(begins))
        before = len(asked.text.split()) + 2  # [CLS], the question, [SEP]
        if before + sum(map(len, story.sentences)) + 1 <= LENGTH:
            places = {"start_positions": before + asked.start, "end_positions": before + asked.end - 1}
            found.append(_encoded(asked.text, " ".join(story.texts()), **places))
    return found


OTHER_WORD, HAS_IT, HAS_IT_NOT = range(3)


def tag_examples(count: int, seed: int) -> list[Features]:
    """A story; of each word whether it names the one who has the thing at the end, the other person, or neither."""
    found = []
    for story, _ in zip(_stories(seed), range(count), strict=False):
        people = {"first": 0, "second": 1}
        tags = [
            [
                OTHER_WORD
                if word.entity not in people
                else HAS_IT
                if people[word.entity] == story.facts.holder
                else HAS_IT_NOT
                for word in sentence
            ]
            for sentence in story.sentences
        ]
        a, b = ([tag for sentence in half for tag in sentence] for half in (tags[:HALF], tags[HALF:]))
        found.append(_encoded(*_halves(story.texts()), labels=[IGNORED, *a, IGNORED, *b, IGNORED]))
    return found


@dataclass(frozen=True)
class Task:
    """What is to be learned. examples(count, seed): so many, others for each seed."""

    asks: str
    model: Any
    classes: int
    examples: Callable[[int, int], list[Features]]


TASKS = {
    "holder": Task("does a man have it?", BertForSequenceClassification, 2, holder_examples),
    "moved": Task("has it changed hands?", BertForSequenceClassification, 2, moved_examples),
    "pairs": Task("the wrong person in B?", BertForSequenceClassification, 2, pair_examples),
    "questions": Task("where? how many? who?", BertForQuestionAnswering, 2, question_examples),
    "tags": Task("which people have it?", BertForTokenClassification, 3, tag_examples),
}


# --- Scores ----------------------------------------------------------------------------------------------


def best_spans(start: np.ndarray, end: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and last token of the span with the largest start + end, not backwards; start, end, allowed (B, L)."""
    total = start[:, :, None] + end[:, None, :]  # (B, L, L)
    possible = np.triu(np.ones(total.shape[1:], bool)) & allowed[:, :, None] & allowed[:, None, :]
    best = np.where(possible, total, -np.inf).reshape(len(start), -1).argmax(axis=1)
    return best // start.shape[1], best % start.shape[1]


def accuracy(model: Any, examples: Sequence[Features]) -> float:
    """The share of right labels; of answers: start and end; of tags: on the words for people."""
    hits: list[bool] = []
    model.eval()
    for first in range(0, len(examples), 100):
        batch = pad(examples[first : first + 100], model.config.pad_token_id)
        targets = {name: batch.pop(name) for name in examples[0].targets}
        with no_grad():
            output = model(**batch)
        if "labels" in targets:
            wanted = targets["labels"]
            right = output.logits.numpy().argmax(axis=-1) == wanted
            hits += right[wanted > OTHER_WORD if wanted.ndim > 1 else wanted != IGNORED].tolist()
        else:
            scores = output.start_logits.numpy(), output.end_logits.numpy()
            starts, ends = best_spans(*scores, batch["token_type_ids"] == 1)
            hits += ((starts == targets["start_positions"]) & (ends == targets["end_positions"])).tolist()
    return float(np.mean(hits))
