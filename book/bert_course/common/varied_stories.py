"""Varied stories as the stored model of `looking_inside` reads them, with their gold arcs; so does `features`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_course.stored import stored
from minigrad import random
from minigrad.bert import from_pretrained
from minigrad.bert.data import make_rows
from minigrad.bert.model import BertForPreTraining
from minigrad.stories.grammar import Clause, Phrase, Story, Word
from minigrad.stories.stories import HALF, STORIES, Stories, antecedents, heads, tell_stories
from minigrad.text.sentences import IS_NEXT, SentencePair
from minigrad.text.tokenizer import WordPieceTokenizer

SETTING = STORIES["varied-stories"]


Arc = tuple[int, int]


def story_model() -> tuple[Any, WordPieceTokenizer]:
    """The stored BertForPreTraining of 4 layers of 4 heads, trained on stories, and its tokenizer."""
    loaded = from_pretrained(stored("varied"))
    assert loaded.tokenizer is not None
    return loaded.model.eval(), loaded.tokenizer


def as_drawn(seed: int) -> Any:
    """A BertForPreTraining of the same size before its first step."""
    config = story_model()[0].config
    random.manual_seed(seed)
    return BertForPreTraining(config).eval()


# name: what an arc goes from and to
RELATIONS = {
    "the → its noun": "from the article to the noun of its phrase",
    "old → its noun": "from an adjective of age to the noun of its phrase",
    "slowly → its verb": "from an adverb of manner to the verb of its sentence",
    "subject → verb": "from a name, noun or pronoun to the verb whose subject it is",
    "verb → subject": "the other way",
    "object → verb": "from the thing to the verb whose object it is",
    "verb → object": "the other way",
    "ancient → books": "from the adjective after is or are to the subject",
    "pronoun → antecedent": "from he, her, it, … to the last name or noun before it that means the same",
    "word → same before": "from a name or noun to its last occurrence before",
}


def arcs_of(story: Story) -> dict[str, list[Arc]]:
    """The arcs of each relation in a story; places count its words from 0."""
    found: dict[str, list[Arc]] = {name: [] for name in RELATIONS}
    words = [word for sentence in story.sentences for word in sentence]
    head = heads(story)
    for place, word in enumerate(words):
        if word.tag == "DET":
            found["the → its noun"].append((place, head[place]))
        elif word.slot == "age":
            found["old → its noun"].append((place, head[place]))
        elif word.text in SETTING.lexicon.manners:
            found["slowly → its verb"].append((place, head[place]))
    start = 0
    for sentence, tree in zip(story.sentences, story.trees, strict=True):
        for clause in _clauses(tree):
            subject, verb = start + clause.subject.at, start + clause.at
            found["subject → verb"].append((subject, verb))
            found["verb → subject"].append((verb, subject))
            if clause.object is not None:
                thing = start + clause.object.at
                found["object → verb"].append((thing, verb))
                found["verb → object"].append((verb, thing))
            if clause.predicate is not None and clause.subject.form == "noun":
                at = next(i for i in range(clause.at, len(sentence)) if sentence[i].text == clause.predicate)
                found["ancient → books"].append((start + at, subject))
        start += len(sentence)
    found["pronoun → antecedent"] = [
        arc for arc in antecedents(story).items() if words[arc[0]].text not in ("who", "which")
    ]
    last: dict[str, int] = {}
    for place, word in enumerate(words):
        if word.tag in ("NAME", "NOUN"):
            if word.text in last:
                found["word → same before"].append((place, last[word.text]))
            last[word.text] = place
    return found


def _clauses(clause: Clause) -> Iterator[Clause]:
    """A clause and the relative clauses inside it."""
    yield clause
    for phrase in [clause.subject, clause.object, *(phrase for _, phrase in clause.others)]:
        if phrase is not None:
            yield from _relatives(phrase)


def _relatives(phrase: Phrase) -> Iterator[Clause]:
    for part in (phrase.possessor, phrase.also):
        if part is not None:
            yield from _relatives(part)
    if phrase.relative is not None:
        yield from _clauses(phrase.relative)


@dataclass(frozen=True)
class Texts:
    """S stories as the model reads them: two sentences, [SEP], the other two; all places count tokens from 0.

    inputs: input_ids, attention_mask and token_type_ids, each (S, L). words (S, L): True but for [CLS], [SEP] and
    [PAD]. heads (S, L): the token on which a word hangs, -1 for a sentence's verb and for what is no word. slots:
    for each story, for each of its L tokens, which choice of the grammar it is, "" for what is no word. arcs: for each
    relation rows of (story, from, to).
    """

    inputs: dict[str, np.ndarray]
    words: np.ndarray
    heads: np.ndarray
    slots: np.ndarray
    arcs: dict[str, np.ndarray]
    stories: list[Story]

    def __len__(self) -> int:
        return len(self.words)


def read(count: int, seed: int) -> Texts:
    """So many stories, none of which the model was trained on for seed 0; another seed draws others."""
    source = Stories(SETTING)
    stories = list(tell_stories(SETTING, count, seed))
    pairs, places = [], []
    for story in stories:
        halves = (story.sentences[:HALF], story.sentences[HALF:])
        a, b = ([source.id(word.text) for sentence in half for word in sentence] for half in halves)
        pairs.append(SentencePair(a, b, IS_NEXT))
        places.append([*range(1, 1 + len(a)), *range(2 + len(a), 2 + len(a) + len(b))])
    longest = max(len(pair.a) + len(pair.b) + 3 for pair in pairs)
    inputs = make_rows(pairs, source.tokenizer, longest)
    shape = inputs["input_ids"].shape
    words, hangs, slots = np.zeros(shape, bool), np.full(shape, -1), np.full(shape, "", dtype="<U24")
    arcs: dict[str, list[tuple[int, int, int]]] = {name: [] for name in RELATIONS}
    for number, (story, at) in enumerate(zip(stories, places, strict=True)):
        words[number, at] = True
        said: list[Word] = [word for sentence in story.sentences for word in sentence]
        for place, (word, head) in enumerate(zip(said, heads(story), strict=True)):
            slots[number, at[place]] = word.slot
            if head != place:
                hangs[number, at[place]] = at[head]
        for name, found in arcs_of(story).items():
            arcs[name] += [(number, at[i], at[j]) for i, j in found]
    return Texts(
        {key: inputs[key] for key in ("input_ids", "attention_mask", "token_type_ids")},
        words,
        hangs,
        slots,
        {name: np.array(found).reshape(-1, 3) for name, found in arcs.items()},
        stories,
    )
