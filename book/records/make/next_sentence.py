"""What the model of chapter `start` goes by in next-sentence prediction, on text of the kind it was trained on.

Three draws of 600 pairs a kind from the part of the documentation of Python, NumPy and Matplotlib that was held out in
its training, judged by the model and by a count of shared pieces: the record that chapter `nsp` shows. The text is
what is on the disk. Three runs of a minute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bert_course.chapters.nsp import by_model, four_kinds, shared_pieces
from bert_course.common.small_model import small_model
from minigrad.bert.data import encode_documents
from minigrad.text.corpus import read_corpus

KINDS = ("neighbours", "swapped", "one document", "two documents")
PAIRS, HELD_OUT, SPLIT_SEED, SEEDS = 600, 0.05, 0, (0, 1, 2)
CASE = ("seed",)  # of a run: what it was made for
Case = tuple[int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"text": "python-docs, held out", "pairs": PAIRS}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [[(seed,) for seed in SEEDS]]


def make(case: Case) -> dict[str, Any]:
    """Draw pairs and let both judges answer: the shares called IsNext, and of pairs that are judged rightly."""
    (seed,) = case
    model, tokenizer = small_model()
    _, held_out = read_corpus("python-docs").split(HELD_OUT, SPLIT_SEED)
    documents = encode_documents(held_out.documents, tokenizer)
    rng = np.random.default_rng(seed)
    drawn = four_kinds(documents, rng)
    chosen = rng.permutation(len(drawn[0]))[:PAIRS]
    kinds = [[pairs[i] for i in chosen] for pairs in drawn]
    count = shared_pieces([sentence for document in documents for sentence in document])
    scores = [np.array([count(a, b) for a, b in pairs]) for pairs in kinds]
    chances = [by_model(model, tokenizer, pairs) for pairs in kinds]
    judges = {
        "the model": [p > 0.5 for p in chances],
        "the count": [x > np.median([scores[0], scores[3]]) for x in scores],
    }
    return {
        "seed": seed,
        "is_next": {
            who: {kind: round(float(x.mean()), 4) for kind, x in zip(KINDS, says, strict=True)}
            for who, says in judges.items()
        },
        "right": {
            who: round(float(np.concatenate([says[0], ~says[3]]).mean()), 4) for who, says in judges.items()
        },
        "true_order": round(float((chances[0] > chances[1]).mean()), 4),
    }
