"""Who wrote this sentence, Doyle or Melville? Sentences of two novelists, and what can learn to tell them apart."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.fit import fine_tune
from bert_course.common.published_model import published, published_folder
from bert_course.common.story_tasks import accuracy
from bert_course.stored import stored
from minigrad import Tensor, nn, no_grad, ops, optim, random
from minigrad.bert import from_pretrained
from minigrad.bert.config import label_names
from minigrad.bert.features import Features, pad
from minigrad.bert.tasks import BertForSequenceClassification
from minigrad.text.tokenizer import WordPieceTokenizer

WRITERS = ("Doyle", "Melville")
STARTS = ("words counted", "from scratch", "documentation", "published, frozen", "published")
SEARCH_SEED = 100  # of the stored runs that look for a rate; those that are compared have lower ones
NAME = "[MASK]"  # in the place of a name
LONGEST = 64  # tokens, the positions of the smaller models

Sentence = tuple[str, int]  # a text, and the number of its writer


@lru_cache(None)
def sentences(part: str) -> tuple[Sentence, ...]:
    """All sentences of a part, "train" or "dev", which share no story and no chapter."""
    with stored(f"authors/{part}.csv").open(encoding="utf-8", newline="") as file:
        return tuple((row["text"], WRITERS.index(row["label"])) for row in csv.DictReader(file))


@lru_cache(None)
def names() -> frozenset[str]:
    """The words that have a capital more often than not where they do not begin a sentence."""
    seen: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text, _ in (*sentences("train"), *sentences("dev")):
        for word in re.findall(r"[A-Za-z']+", text)[1:]:
            seen[word.lower()] += 1
            capital[word.lower()] += word[0].isupper()
    return frozenset(
        word for word, count in seen.items() if capital[word] > count / 2 and word.split("'")[0] != "i"
    )


def without_names(text: str) -> str:
    """The text with [MASK] for each name of a person or a place, and for what else the writers give a capital."""
    return re.sub(r"[A-Za-z']+", lambda word: NAME if word[0].lower() in names() else word[0], text)


def labelled(count: int, seed: int) -> list[Sentence]:
    """Sentences to learn from, drawn."""
    order = np.random.default_rng(seed).permutation(len(sentences("train")))
    return [sentences("train")[place] for place in order[:count]]


def held_out(seed: int) -> list[Sentence]:
    """Sentences to be judged by: 400 of them in the search for a rate, 1,200 others for the runs that are compared."""
    return list(sentences("dev")[:400] if seed == SEARCH_SEED else sentences("dev")[400:])


# --- Counting words --------------------------------------------------------------------------------------


def by_words(train: Sequence[Sentence], test: Sequence[Sentence]) -> float:
    """The share of `test` that naive Bayes gets right, by the words and marks of a sentence, whatever their order.

    Each count of a writer's has half a count added (Mosteller and Wallace 1963 used such counts, of few words).
    """
    counts: tuple[Counter[str], ...] = (Counter(), Counter())
    for text, writer in train:
        counts[writer].update(words_of(text))
    known = len(counts[0] | counts[1])
    totals = [count.total() + (known + 1) / 2 for count in counts]
    right = 0
    for text, writer in test:
        scores = [
            sum(np.log((count[word] + 0.5) / total) for word in words_of(text))
            for count, total in zip(counts, totals, strict=True)
        ]
        right += int(np.argmax(scores)) == writer
    return right / len(test)


def words_of(text: str) -> list[str]:
    """Its words in small letters, and its marks."""
    return re.findall(r"\[mask\]|[a-z']+|[^\sa-z]", text.lower())


# --- BERT ------------------------------------------------------------------------------------------------


def features(found: Sequence[Sentence], tokenizer: WordPieceTokenizer) -> list[Features]:
    """The sentences as a model of classes reads them, at most 64 tokens of each."""
    encodings = [tokenizer.encode(text, max_length=LONGEST) for text, _ in found]
    return [
        Features(one.input_ids, one.token_type_ids, {"labels": writer})
        for one, (_, writer) in zip(encodings, found, strict=True)
    ]


def begin(start: str, seed: int) -> tuple[Any, WordPieceTokenizer]:
    """A model of two classes with a new head, and its tokenizer; from scratch: of the size of `start`, new weights."""
    random.manual_seed(seed)
    folder = published_folder() if start == "published" else stored("start")
    loaded = from_pretrained(folder, BertForSequenceClassification, label_names(2))
    assert loaded.tokenizer is not None
    if start == "from scratch":
        return BertForSequenceClassification(loaded.model.config), loaded.tokenizer
    return loaded.model, loaded.tokenizer


def tuned(
    start: str, train: Sequence[Sentence], test: Sequence[Sentence], rate: float, steps: int, seed: int
) -> float:
    """Fine-tune, and return the share of `test` that is right."""
    model, tokenizer = begin(start, seed)
    fine_tune(model, features(train, tokenizer), rate, steps, seed)
    return accuracy(model, features(test, tokenizer))


_vectors: dict[str, np.ndarray] = {}  # of the sentences that `vectors` has seen


def vectors(found: Sequence[Sentence]) -> np.ndarray:
    """The published model's sentence vectors, the means of all tokens' last rows, as it was trained; (n, 384).

    Raises NotHere, in one line, where the model is not on this machine.
    """
    missing = [one for one in found if one[0] not in _vectors]
    if missing:
        loaded = published()
        assert loaded.tokenizer is not None
        model = loaded.model.eval()
        for first in range(0, len(missing), 50):
            some = missing[first : first + 50]
            batch = pad(features(some, loaded.tokenizer), model.config.pad_token_id)
            batch.pop("labels")
            with no_grad():
                X = model(**batch).last_hidden_state.numpy()  # (B, L, 384)
            real = batch["attention_mask"][..., None].astype(np.float32)  # (B, L, 1)
            means = (X * real).sum(axis=1) / real.sum(axis=1)  # (B, 384)
            _vectors.update((text, mean) for (text, _), mean in zip(some, means, strict=True))
    return np.stack([_vectors[text] for text, _ in found])


def by_vectors(
    train: Sequence[Sentence], test: Sequence[Sentence], rate: float, steps: int, seed: int
) -> float:
    """The share of `test` that a linear layer on the published model's vectors gets right."""
    random.manual_seed(seed)
    head = nn.Linear(384, 2)
    optimiser = optim.AdamW(head.parameters(), lr=rate, weight_decay=0.01)
    Z, labels = Tensor(vectors(train)), np.array([writer for _, writer in train])
    for _ in range(steps):
        optimiser.zero_grad()
        ops.cross_entropy(head(Z), labels).backward()
        optimiser.step()
    with no_grad():
        found = head(Tensor(vectors(test))).numpy().argmax(axis=-1)
    return float((found == [writer for _, writer in test]).mean())


# --- The record ------------------------------------------------------------------------------------------


def scores_of(record: dict[str, Any], text: str, start: str, size: int) -> list[float]:
    """The accuracies of the runs that are compared, one for each seed."""
    return [
        run["accuracy"]
        for run in record["runs"]
        if (run["text"], run["start"], run["labels"]) == (text, start, size) and run["seed"] < SEARCH_SEED
    ]


def writer_curves(record: dict[str, Any], text: str) -> Picture:
    """Accuracy against the number of labels, a line for each start, with the range of its seeds."""
    sizes = (16, 64, 256, 1024)
    looks = ("ink", "s--"), ("second", "v-"), ("first", "o-"), ("third", "D--"), ("weight", "^-")

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for start, (tone, line) in zip(STARTS, looks, strict=True):
            found = [scores_of(record, text, start, size) for size in sizes]
            means = [float(np.mean(one)) for one in found]
            axes.plot(sizes, means, line, color=colours[tone], markersize=5, label=start)
            low, high = [min(one) for one in found], [max(one) for one in found]
            axes.fill_between(sizes, low, high, color=colours[tone], alpha=0.15, linewidth=0)
        axes.axhline(0.5, color=colours["ink"], linestyle=":", linewidth=1)
        axes.set_xscale("log", base=4)
        axes.set_xticks(sizes, ["16", "64", "256", "1,024"])
        axes.set(xlabel="labelled sentences", ylabel="right", ylim=(0.45, 1.0))
        axes.legend(loc="upper left", fontsize=11)

    ends = {start: [np.mean(scores_of(record, text, start, size)) for size in (16, 1024)] for start in STARTS}
    told = "; ".join(f"{start} {few:.2f} and {many:.2f}" for start, (few, many) in ends.items())
    return figure(plot, f"Right answers after 16 and after 1,024 labels, {text}: {told}.", (5.4, 4.0))
