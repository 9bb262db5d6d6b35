"""Answers to the exercises of chapter 20b as learners write them: wrong ones with what to tell each, and right ones."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from minigrad.course.beam_tree import widths_that_find_it
from minigrad.seq2seq.bleu import bleu

__all__ = ["RIGHT", "WRONG"]


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


def by_probabilities(model, source, max_length):
    """Softmax, and the logarithm of each factor."""
    state = model.start(model.encode(source))
    fed, ids, log_p = [model.start_token], [], 0.0
    for _ in range(max_length):
        logits, state = model.step(state, np.array(fed))
        e = np.exp(logits[0] - np.max(logits[0]))
        p = e / e.sum()
        word = int(np.argmax(p))
        log_p += math.log(p[word])
        if word == model.end_token:
            return ids, log_p
        ids.append(word)
        fed = [word]
    return ids, log_p


def variant(
    model, source, max_length, keep=True, feed=True, add="log", end=True, first=None, all_words=False
):
    state = model.start(model.encode(source))
    last, ids, total = model.start_token if first is None else first(model), [], 0.0
    for _ in range(max_length):
        fed = last if feed else model.start_token
        logits, after = model.step(state, np.array([fed]))
        state = after if keep else state
        log_p = log_softmax(logits[0])
        last = int(log_p.argmax())
        if add == "log" and (end or last != model.end_token):
            total += float(log_p[last])
        if add == "p":
            total += float(np.exp(log_p[last]))
        if add == "logit":
            total += float(logits[0][last])
        if last == model.end_token:
            if all_words:
                ids.append(last)
            break
        ids.append(last)
    return ids, total


def forgets_the_state(model, source, max_length):
    return variant(model, source, max_length, keep=False)


def start_again(model, source, max_length):
    return variant(model, source, max_length, feed=False)


def sums_probabilities(model, source, max_length):
    return variant(model, source, max_length, add="p")


def sums_logits(model, source, max_length):
    return variant(model, source, max_length, add="logit")


def end_for_free(model, source, max_length):
    return variant(model, source, max_length, end=False)


def end_among_words(model, source, max_length):
    return variant(model, source, max_length, all_words=True)


def from_the_end(model, source, max_length):
    return variant(model, source, max_length, first=lambda model: model.end_token)


def no_end(model, source, max_length):
    state = model.start(model.encode(source))
    last, ids, total = model.start_token, [], 0.0
    while len(ids) < max_length:
        logits, state = model.step(state, np.array([last]))
        log_p = log_softmax(logits[0])
        last = int(log_p.argmax())
        ids.append(last)
        total += float(log_p[last])
    return ids, total


def as_probability(model, source, max_length):
    ids, log_p = variant(model, source, max_length)
    return ids, math.exp(log_p)


def words_only(model, source, max_length):
    return with_while(model, source, max_length)[0]


def one_more(model, source, max_length):
    return with_while(model, source, max_length + 1)


def end_behind_the_last_word(model, source, max_length):
    ids, _ = with_while(model, source, max_length)
    more, log_p = with_while(model, source, max_length + 1)
    return ids, log_p if more == ids else with_while(model, source, max_length)[1]


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


def a_usual_tree(k):
    """One that greedy search misses, and every beam finds."""
    tree = {"": {"a": 0.6, "b": 0.4}, "a": shared([], []), "b": {"c": 1.0}}
    return widths_that_find_it(tree, (1, k, k + 1))


def a_certain_tree(k):
    tree = {"": {"a": 0.6, "b": 0.4}, "a": {"c": 1.0}, "b": {"c": 1.0}}
    return widths_that_find_it(tree, (1, k, k + 1))


def a_late_tree(k):
    """The best text begins with the last of k + 1 first words."""
    weights = [1 + 0.01 * (k - i) for i in range(k + 1)]
    firsts = {f"w{i}": weight / sum(weights) for i, weight in enumerate(weights)}
    tree = {"": firsts} | {word: shared([], []) for word in firsts}
    tree[f"w{k}"] = {"go": 1.0}
    return widths_that_find_it(tree, (1, k, k + 1))


def a_hidden_tree(k):
    weights = [1 + 0.01 * (k + 3 - i) for i in range(k + 4)]
    firsts = {f"w{i}": weight / sum(weights) for i, weight in enumerate(weights)}
    tree = {"": firsts} | {word: shared([], []) for word in firsts}
    tree[f"w{k + 3}"] = {"go": 1.0}
    return widths_that_find_it(tree, (1, k, k + 1))


def not_greedy(k):
    return with_letters(k)[1:]


# --- bleu_with_one_mistake --------------------------------------------------------------------------------


def by_the_library(T, t):
    right = [str(i) for i in range(T)]
    return bleu([[*right[:t], "wrong", *right[t + 1 :]]], [right])


def by_counting(T, t):
    total = 0.0
    for n in range(1, 5):
        grams = [range(i, i + n) for i in range(T - n + 1)]
        kept = sum(t not in gram for gram in grams)
        if not kept:
            return 0.0
        total += math.log(kept / len(grams)) / 4
    return 100 * math.exp(total)


def shares_of(T, t):
    right = list(range(T))
    wrong = [*right[:t], -1, *right[t + 1 :]]
    found = []
    for n in range(1, 5):
        ours, theirs = (Counter(tuple(w[i : i + n]) for i in range(T - n + 1)) for w in (wrong, right))
        found.append((ours & theirs).total() / ours.total() if ours else 0.0)
    return found


def plain_mean(T, t):
    found = shares_of(T, t)
    return 100 * sum(found) / 4 if min(found) > 0 else 0.0


def no_root(T, t):
    return 100 * math.prod(shares_of(T, t))


def share_of_words(T, t):
    return 100 * (T - 1) / T if T > 1 else 0.0


def up_to_one(T, t):
    return by_counting(T, t) / 100


def always_n(T, t):
    found = [(T - n + 1 - n) / (T - n + 1) if n <= T else 0 for n in range(1, 5)]
    return 100 * math.prod(found) ** 0.25 if min(found) > 0 else 0.0


RIGHT = {
    "write_greedily": [with_while, by_probabilities],
    "crowd_out": [with_letters, with_numbers],
    "bleu_with_one_mistake": [by_the_library, by_counting],
}
WRONG = {
    "write_greedily": [
        (forgets_the_state, "from the first state"),
        (start_again, "start token at every step"),
        (sums_probabilities, "add up probabilities"),
        (sums_logits, "add up logits"),
        (end_for_free, "leave out the end token's"),
        (end_among_words, "among your words"),
        (from_the_end, "begin with the end token"),
        (no_end, "do not stop"),
        (as_probability, "return the probability"),
        (words_only, "words only"),
        (one_more, "one step too many"),
        (end_behind_the_last_word, "one step too many"),
    ],
    "crowd_out": [
        (a_usual_tree, "and so does width k + 1"),
        (a_certain_tree, "Greedy search finds"),
        (a_late_tree, "That is the usual case"),
        (a_hidden_tree, "No width finds"),
        (not_greedy, "also wants width 1"),
    ],
    "bleu_with_one_mistake": [
        (plain_mean, "arithmetic mean"),
        (no_root, "leave out the root"),
        (share_of_words, "single words only"),
        (up_to_one, "from 0 to 100"),
        (always_n, "Near an end"),
    ],
}
