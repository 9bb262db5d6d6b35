"""Right answers to the exercises of chapter `decoding`, as learners write them."""

from __future__ import annotations

import numpy as np

from bert_course.common.beam_tree import widths_that_find_it
from minigrad.seq2seq.bleu import bleu

# --- write_greedily ---------------------------------------------------------------------------------------


def log_softmax(x):
    top = x.max()
    return x - top - np.log(np.exp(x - top).sum())


def with_while(model, source, max_length):
    state, words, parts = model.start(model.encode(source)), [model.start_token], []
    while len(parts) < max_length and words[-1] != model.end_token:
        logits, state = model.step(state, np.asarray(words[-1:]))
        parts.append(log_softmax(logits[0])[logits[0].argmax()])
        words.append(logits[0].argmax())
    return [int(word) for word in words[1:] if word != model.end_token], float(sum(parts))


# --- crowd_out --------------------------------------------------------------------------------------------


def shared(words, p, count=50):
    """`words` with these probabilities, and the rest of 1 shared out."""
    rest = 1 - sum(p)
    return dict(zip(words, p, strict=True)) | {f"other{i}": rest / count for i in range(count)}


def with_letters(k):
    """k - 1 words with one good continuation each, one that leads to the best, one that has two."""
    lead = [0.2 / k * (5 - 0.01 * i) for i in range(k - 1)]
    left = 1 - sum(lead)
    firsts = [f"w{i}" for i in range(k - 1)] + ["best", "bad"]
    tree = {"": dict(zip(firsts, [*lead, 0.505 * left, 0.495 * left], strict=True))}
    for first, p in tree[""].items():
        if first == "bad":
            tree[first] = {"one": 0.5, "two": 0.5}
        elif first == "best":
            tree[first] = shared(["go"], [0.45])
        else:
            tree[first] = shared(["go"], [max(0.5, 0.3 * left / p)])
        for second in tree[first]:
            tree[f"{first} {second}"] = {"on": 1.0} if (first, second) == ("best", "go") else shared([], [])
    return widths_that_find_it(tree, (1, k, k + 1))


def with_numbers(k):
    """The same in numbers chosen by trying."""
    weights = [10.0] * (k - 1) + [8.0, 7.8]
    firsts = {chr(97 + i): weight / sum(weights) for i, weight in enumerate(weights)}
    *leads, best, bad = firsts
    tree = {"": firsts, best: shared(["q"], [0.45], 30), bad: shared(["r", "s"], [0.48, 0.49], 30)}
    tree |= {lead: shared(["p"], [0.6], 30) for lead in leads}
    for first in firsts:
        tree |= {f"{first} {second}": shared([], [], 30) for second in tree[first]}
    tree[f"{best} q"] = {"r": 1.0}
    return widths_that_find_it(tree, (1, k, k + 1))


# --- bleu_with_one_mistake --------------------------------------------------------------------------------


def by_the_library(T, t):
    right = [str(i) for i in range(T)]
    return bleu([[*right[:t], "wrong", *right[t + 1 :]]], [right])


RIGHT = {
    "write_greedily": [with_while],
    "crowd_out": [with_letters, with_numbers],
    "bleu_with_one_mistake": [by_the_library],
}
