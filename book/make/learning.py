"""What the model of the opening page guesses while it learns, and how much of its examples it has read: one record.

    python -m book.make.learning runs/learning minigrad/bert/trained/learning.json

trains with the settings of the stored model, stops at some steps to score held-out text and to fill the gap of WATCHED,
and writes that down with the settings. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bert_course.common.small_model import EXAMPLES, SENTENCES, SIMILAR
from minigrad.bert.config import IGNORED, PRESETS, BertConfig
from minigrad.bert.metrics import Tally, evaluate
from minigrad.bert.predict import fill_mask
from minigrad.bert.pretraining import HELD_OUT, Pretraining, prepare
from minigrad.bert.settings import PretrainingArguments
from minigrad.files import write_atomic
from minigrad.text.corpus import Corpus, read_corpus

# Close together where the loss falls fast.
POINTS = (0, 20, 50, 100, 200, 300, 400, 500, 600, 800, 1000, 1500, *range(2000, 12001, 1000))
WATCHED = next(iter(EXAMPLES))
SETTINGS = PretrainingArguments(steps=12000)


def learning(
    folder: Path,
    target: Path,
    corpus: Corpus | None = None,
    config: BertConfig = PRESETS["reduced"],
    settings: PretrainingArguments = SETTINGS,
    points: Sequence[int] = POINTS,
    say: Callable[[str], object] = print,
) -> None:
    """Train in `folder`, and write to `target` what the model says at `points`: steps, the first of them 0.

    corpus: by default `python-docs`. The file is JSON, and is written again after each point: the settings; the
    words and pieces of the training text, the entropy of the pieces in nats, and the share of the hidden words that
    the most frequent piece gets right; `frequencies_loss`, the loss in nats on the hidden words of a guess that
    knows how frequent each piece is in the training text, and no more; `longest_run` of the page's sentences; and
    for each point the losses in nats, the shares that are right, and the five likeliest pieces for the gap of
    WATCHED.
    """
    corpus = corpus or read_corpus("python-docs")
    train, _ = corpus.split(HELD_OUT, settings.seed)
    resume = target.exists() and any(folder.glob("checkpoint-*"))
    with prepare(corpus, config, settings, folder, resume=resume, say=say) as run:
        whole = [text.replace("[MASK]", word) for text, word in EXAMPLES.items()]
        record: dict[str, Any] = {
            "corpus": corpus.source,
            "settings": dataclasses.asdict(settings),
            "training_words": sum(len(sentence.split()) for sentence in train.sentences),
            **_frequencies(run, train),
            "longest_run": longest_run([*whole, SIMILAR, *SENTENCES], train.sentences),
            "points": _points_so_far(target, run.step) if resume else [],
        }
        done = {point["step"] for point in record["points"]}
        while True:
            if run.step in points and run.step not in done:
                record["points"].append(_point(run))
                if run.step:
                    run.save()
            if run.step in points:
                write_atomic(target, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
                say(f"step {run.step}: {record['points'][-1]['mlm_loss']:.3f} nats")
            if run.step >= max(points):
                return
            run.train_step(Tally())


def _point(run: Pretraining) -> dict[str, Any]:
    """What the model says now."""
    figures = {name: round(value, 4) for name, value in evaluate(run.model, run.held_out).items()}
    (words,) = fill_mask(run.model, run.tokenizer, WATCHED)
    guesses = [[word.token, round(word.probability, 4)] for word in words]
    return {"step": run.step, **figures, "guesses": guesses}


def _points_so_far(target: Path, step: int) -> list[dict[str, Any]]:
    points = json.loads(target.read_text(encoding="utf-8"))["points"]
    return [point for point in points if point["step"] <= step]


def _frequencies(run: Pretraining, train: Corpus) -> dict[str, Any]:
    """How many pieces the training text has, the most frequent one, and its share of the held-out hidden words."""
    counts = Counter(piece for sentence in train.sentences for piece in run.tokenizer.token_ids(sentence))
    ((most_frequent, _),) = counts.most_common(1)
    hidden = [int(label) for batch in run.held_out for label in batch["labels"].ravel() if label != IGNORED]
    total = counts.total() + run.tokenizer.vocab_size  # one more of each: no piece is impossible
    surprise = [-math.log((counts[label] + 1) / total) for label in hidden]
    return {
        "training_pieces": counts.total(),
        "unigram_entropy": round(run.unigram_entropy, 4),
        "most_frequent": run.tokenizer.id_to_token(most_frequent),
        "most_frequent_right": round(hidden.count(most_frequent) / len(hidden), 4),
        "frequencies_loss": round(sum(surprise) / len(surprise), 4),
    }


def longest_run(texts: Iterable[str], sentences: Iterable[str]) -> dict[str, int]:
    """For each text, how many of its words stand next to each other, in the same order, in one of `sentences`.

    Case and punctuation do not count.
    """
    read = "".join(f" {' '.join(_words(sentence))} |" for sentence in sentences)

    def longest(words: Sequence[str]) -> int:
        runs = ((i, j) for i in range(len(words)) for j in range(i + 1, len(words) + 1))
        return max((j - i for i, j in runs if f" {' '.join(words[i:j])} " in read), default=0)

    return {text: longest(_words(text)) for text in texts}


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def main(arguments: Any = None) -> None:
    """Train, and write the record."""
    parser = argparse.ArgumentParser(description=learning.__doc__)
    parser.add_argument("folder", type=Path, help="the run's folder")
    parser.add_argument("target", type=Path, help="the record, a JSON file")
    options = parser.parse_args(arguments)
    learning(options.folder, options.target)


if __name__ == "__main__":
    main()
