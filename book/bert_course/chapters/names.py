"""Names in real text: which words of a lower-cased sentence the writer began with a capital letter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from bert_course.common.small_model import small_model
from bert_course.stored import stored
from minigrad import random
from minigrad.bert import from_pretrained
from minigrad.bert.config import IGNORED, label_names
from minigrad.bert.features import Features, pad
from minigrad.bert.tasks import BertForTokenClassification
from minigrad.tensor import no_grad
from minigrad.text.corpus import read_corpus
from minigrad.text.tokenizer import WordPieceTokenizer

MOST_TOKENS = 48
ALIGNMENTS = ("first piece", "all pieces", "one piece late")

# words, and 1 for a name, 0 for another word, -100 for what is not asked
Tagged = tuple[list[str], list[int]]


@lru_cache(None)
def tagged_sentences() -> tuple[list[Tagged], list[Tagged]]:
    """Sentences of the Holmes stories with a name in them, to learn from and held out, of different documents.

    A name is a word with a capital letter that neither opens the sentence nor is "I". The first word is not asked.
    """
    documents = read_corpus(stored("holmes.txt")).documents
    parts: tuple[list[Tagged], list[Tagged]] = ([], [])
    for number, document in enumerate(documents):
        for sentence in document:
            words = re.findall(r"[A-Za-z]+|[^\sA-Za-z]", sentence)
            tags = [int(word[0].isupper() and word != "I") for word in words]
            if words and words[0].isalpha() and any(tags[1:]) and sentence != sentence.upper():
                parts[number % 2].append((words, [IGNORED, *tags[1:]]))
    return parts


def aligned(words: Sequence[str], tags: Sequence[int], tokenizer: WordPieceTokenizer, how: str) -> Features:
    """The pieces of the words with [CLS] and [SEP], and a label for each; places: the first piece of each word."""
    ids, labels, places = [tokenizer.cls_token_id], [IGNORED], []
    for word, tag in zip(words, tags, strict=True):
        pieces = tokenizer.token_ids(word)
        rest = tag if how == "all pieces" else IGNORED
        places.append(len(ids))
        ids += pieces
        labels += [tag] + [rest] * (len(pieces) - 1)
    ids, labels = [*ids, tokenizer.sep_token_id], [*labels, IGNORED]
    if how == "one piece late":
        labels = [IGNORED, *labels[:-1]]
    return Features(ids, [0] * len(ids), {"labels": labels}, places)


def name_examples(count: int, seed: int, how: str = "first piece", held_out: bool = False) -> list[Features]:
    """So many sentences, drawn; how: which pieces carry a label, one of ALIGNMENTS."""
    tokenizer = small_model()[1]
    sentences = tagged_sentences()[held_out]
    found: list[Features] = []
    for number in np.random.default_rng(seed).permutation(len(sentences)):
        words, tags = sentences[number]
        one = aligned(words, tags, tokenizer, how)
        if len(one.input_ids) <= MOST_TOKENS and len(found) < count:
            found.append(one)
    return found


def begin_names(start: str, seed: int) -> Any:
    """A model of tags; start: pre-trained on documentation, or from scratch."""
    random.manual_seed(seed)
    loaded = from_pretrained(stored("start"), BertForTokenClassification, label_names(2))
    return loaded.model if start == "pre-trained" else BertForTokenClassification(loaded.model.config)


def score_names(model: Any, held_out: Sequence[Features]) -> dict[str, float]:
    """The F1 of names, and the share of all words that are right, read at the first piece of each word."""
    true, said = [], []
    for first in range(0, len(held_out), 50):
        part = held_out[first : first + 50]
        batch = pad(part, model.config.pad_token_id)
        labels = batch.pop("labels")
        with no_grad():
            tags = model.eval()(**batch).logits.numpy().argmax(axis=-1)
        for row, one in enumerate(part):
            for place in one.places:
                if labels[row, place] != IGNORED:
                    true.append(labels[row, place])
                    said.append(tags[row, place])
    names, found = np.array(true) == 1, np.array(said) == 1
    both = (names & found).sum()
    return {"f1": float(2 * both / (names.sum() + found.sum())), "accuracy": float((names == found).mean())}
