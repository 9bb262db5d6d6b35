"""Answers to the exercises of chapter 20 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import numpy as np

__all__ = ["RIGHT", "WRONG"]


# --- shift_and_mask ---------------------------------------------------------------------------------------


def place_by_place(labels, source, start, pad):
    B, T = labels.shape
    ids = np.zeros((B, T), labels.dtype)
    own = np.zeros((B, T, T), bool)
    cross = np.zeros((B, T, source.shape[1]), bool)
    for b in range(B):
        for t in range(T):
            before = start if t == 0 else labels[b, t - 1]
            ids[b, t] = pad if before == -100 else before
        for t in range(T):
            for j in range(t + 1):
                own[b, t, j] = ids[b, j] != pad
            cross[b, t] = source[b] != pad
    return ids, own, cross


def joined(labels, source, start, pad):
    first = np.full((len(labels), 1), start)
    ids = np.hstack([first, labels[:, :-1]])
    ids[ids == -100] = pad
    T = labels.shape[1]
    now = np.arange(T)[:, None] >= np.arange(T)
    own = np.logical_and(now[None], (ids != pad)[:, None])
    cross = np.ones((1, T, 1), bool) & (source != pad)[:, None]
    return ids, own, cross


def rolled(labels, source, start, pad):
    ids = np.roll(labels, 1, axis=1)
    ids[:, 0] = start
    ids[ids < 0] = pad
    T = labels.shape[1]
    own = ~np.triu(np.ones((T, T), bool), 1) & (ids[:, np.newaxis] != pad)
    return ids, own, np.stack([source != pad] * T, axis=1)


def not_shifted(labels, source, start, pad):
    ids, _own, cross = rolled(labels, source, start, pad)
    ids = np.where(labels < 0, pad, labels)
    return ids, np.tri(ids.shape[1], dtype=bool) & (ids != pad)[:, None], cross


def hundred_left(labels, source, start, pad):
    ids = np.hstack([np.full((len(labels), 1), start), labels[:, :-1]])
    own = np.tri(ids.shape[1], dtype=bool) & (ids != pad)[:, None]
    return ids, own, np.stack([source != pad] * ids.shape[1], axis=1)


def future_seen(labels, source, start, pad):
    ids, _own, cross = joined(labels, source, start, pad)
    return ids, np.repeat((ids != pad)[:, None], ids.shape[1], axis=1), cross


def upper(labels, source, start, pad):
    ids, _own, cross = joined(labels, source, start, pad)
    T = ids.shape[1]
    return ids, np.triu(np.ones((T, T), bool)) & (ids != pad)[:, None], cross


def strictly_before(labels, source, start, pad):
    ids, own, cross = joined(labels, source, start, pad)
    return ids, own & ~np.eye(ids.shape[1], dtype=bool), cross


def padding_left(labels, source, start, pad):
    ids, _own, cross = joined(labels, source, start, pad)
    T = ids.shape[1]
    return ids, np.broadcast_to(np.tri(T, dtype=bool), (len(ids), T, T)), cross


def target_in_cross(labels, source, start, pad):
    ids, own, _ = joined(labels, source, start, pad)
    T = ids.shape[1]
    return ids, own, np.repeat((ids != pad)[:, None], T, axis=1)


def all_of_source(labels, source, start, pad):
    ids, own, cross = joined(labels, source, start, pad)
    return ids, own, cross | True


def rows_hidden(labels, source, start, pad):
    ids, own, cross = joined(labels, source, start, pad)
    return ids, own, cross & (ids != pad)[:, :, None]


def hides_where_true(labels, source, start, pad):
    ids, own, cross = joined(labels, source, start, pad)
    return ids, np.logical_not(own), np.logical_not(cross)


def small_cross(labels, source, start, pad):
    ids, own, _ = joined(labels, source, start, pad)
    return ids, own, np.not_equal(source, pad)


# --- smoothed_loss ----------------------------------------------------------------------------------------


def log_softmax(logits):
    top = np.max(logits)
    return logits - top - np.log(np.sum(np.exp(logits - top)))


def as_a_mixture(logits, label, eps):
    """A part of the plain loss, and a part of the mean over all words."""
    V, log_p = logits.size, log_softmax(logits)
    loss = (1 - eps) * -log_p[label] - eps * log_p.mean()
    gradient = np.exp(log_p) - eps / V
    gradient[label] -= 1 - eps
    top, rest = 1 - eps + eps / V, eps / V
    lowest = -top * np.log(top) - ((V - 1) * rest * np.log(rest) if eps else 0.0)
    return loss, gradient, lowest


def with_eye(logits, label, eps):
    V = len(logits)
    q = (1 - eps) * np.eye(V)[label] + eps * np.ones(V) / V
    log_p = log_softmax(logits)
    entropy = sum(-x * np.log(x) for x in q if x > 0)
    return -np.dot(q, log_p), np.exp(log_p) - q, entropy


def own_share_forgotten(logits, label, eps):
    V, log_p = len(logits), log_softmax(logits)
    q = np.full(V, eps / V)
    q[label] = 1 - eps
    there = q > 0
    return -(q @ log_p), np.exp(log_p) - q, -(q[there] * np.log(q[there])).sum()


def over_the_others(logits, label, eps):
    V, log_p = len(logits), log_softmax(logits)
    q = np.where(np.arange(V) == label, 1 - eps, eps / (V - 1))
    there = q > 0
    return -(q @ log_p), np.exp(log_p) - q, -(q[there] * np.log(q[there])).sum()


def other_way(logits, label, eps):
    loss, gradient, lowest = with_eye(logits, label, eps)
    return loss, -gradient, lowest


def one_hot_gradient(logits, label, eps):
    loss, _, lowest = with_eye(logits, label, eps)
    return loss, np.exp(log_softmax(logits)) - np.eye(len(logits))[label], lowest


def lowest_is_zero(logits, label, eps):
    return *with_eye(logits, label, eps)[:2], 0.0


def mean_of_words(logits, label, eps):
    loss, gradient, lowest = with_eye(logits, label, eps)
    return loss / len(logits), gradient, lowest


def large_numbers(logits, label, eps):
    with np.errstate(all="ignore"):
        p = np.exp(logits) / np.exp(logits).sum()
        q = (1 - eps) * np.eye(len(logits))[label] + eps / len(logits)
        return -(q * np.log(p)).sum(), p - q, with_eye(logits, label, eps)[2]


def loss_and_gradient(logits, label, eps):
    return with_eye(logits, label, eps)[:2]


# --- masks_at ---------------------------------------------------------------------------------------------


def by_rules(place):
    if place == "decoder, cross-attention":
        return "target", "source", ["source padding"]
    text = "source" if place in ("encoder", "BERT") else "target"
    hidden = [] if "step" in place else [f"{text} padding"]
    return text, text, (["later words"] if text == "target" and hidden else []) + hidden


def one_by_one(place):
    if place == "decoder, one step of writing":
        return "target", "target", []
    if place in ("GPT", "decoder, self-attention"):
        return "target", "target", sorted(["target padding", "later words"])
    return ("target" if "cross" in place else "source"), "source", ["source padding"]


def padding_of_target(place):
    asks, answers, hidden = by_rules(place)
    return asks, answers, ["target padding"] if "cross" in place else hidden


def causal_cross(place):
    asks, answers, hidden = by_rules(place)
    return asks, answers, ["later words", "source padding"] if "cross" in place else hidden


def swapped_cross(place):
    asks, answers, hidden = by_rules(place)
    return answers, asks, hidden


def masked_step(place):
    asks, answers, hidden = by_rules(place)
    return asks, answers, ["later words"] if "step" in place else hidden


def gpt_sees_all(place):
    asks, answers, hidden = by_rules(place)
    return asks, answers, ["target padding"] if place == "GPT" else hidden


def causal_alone(place):
    asks, answers, hidden = by_rules(place)
    return asks, answers, ["later words"] if place == "decoder, self-attention" else hidden


def another_order(place):
    asks, answers, hidden = by_rules(place)
    return asks, answers, sorted(hidden, reverse=True)


# --- fault_in_decoder -------------------------------------------------------------------------------------


def by_slopes(decoder):
    """Which output row depends on which input row, by small steps."""
    rng = np.random.default_rng(5)
    y, x = rng.standard_normal((5, 4)), rng.standard_normal((7, 4))
    words = np.arange(7) < 5

    def depends(array, other):
        found = np.zeros((5, len(array)), bool)
        for row in range(len(array)):
            moved = array.copy()
            moved[row] += 0.5
            now = decoder(moved, x, words) if other == "y" else decoder(y, moved, words)
            found[:, row] = np.abs(now - decoder(y, x, words)).max(axis=1) > 1e-8
        return found

    of_target, of_source = depends(y, "y"), depends(x, "x")
    if np.triu(of_target, 1).any():
        return "future"
    if of_source[:, 5:].any():
        return "padding"
    if not of_source.any():
        return "blind"
    return "none" if of_source[0, 4] else "late"


def by_noise(decoder):
    rng = np.random.default_rng(11)
    y, x, words = rng.standard_normal((4, 4)), rng.standard_normal((6, 4)), np.array([True] * 4 + [False] * 2)

    def differs(y2, x2, row):
        return not np.allclose(decoder(y2, x2, words)[row], decoder(y, x, words)[row], atol=1e-10)

    if differs(np.vstack([y[:1], rng.standard_normal((3, 4))]), x, 0):
        return "future"
    if differs(y, np.vstack([x[:4], rng.standard_normal((2, 4))]), 3):
        return "padding"
    if not differs(y, rng.standard_normal((6, 4)), 3):
        return "blind"
    return "late" if not differs(y, np.vstack([x[:1], rng.standard_normal((5, 4))]), 0) else "none"


def future_forgotten(decoder):
    return "none" if by_slopes(decoder) == "future" else by_slopes(decoder)


def padding_forgotten(decoder):
    return "none" if by_slopes(decoder) == "padding" else by_slopes(decoder)


def late_forgotten(decoder):
    return "none" if by_slopes(decoder) == "late" else by_slopes(decoder)


def blind_is_late(decoder):
    return "late" if by_slopes(decoder) == "blind" else by_slopes(decoder)


def nothing_wrong(decoder):
    return "none"


# --- most_aligned_head ------------------------------------------------------------------------------------


def head_by_head(weights, gold):
    layers, h = weights[0].shape[:2]
    best = (0, 0, -1.0)
    for layer in range(layers):
        for head in range(h):
            hits = [
                np.argmax(one[layer, head, t]) in place
                for one, places in zip(weights, gold, strict=True)
                for t, place in enumerate(places)
                if len(place)
            ]
            if np.mean(hits) > best[2]:
                best = (layer, head, float(np.mean(hits)))
    return best


def in_arrays(weights, gold):
    hits = total = 0
    for one, places in zip(weights, gold, strict=True):
        wanted = np.array([place[0] if place else -1 for place in places])
        hits = hits + (one.argmax(-1) == wanted).sum(axis=-1)
        total += (wanted >= 0).sum()
    layer, head = divmod(int(hits.argmax()), hits.shape[1])
    return layer, head, hits[layer, head] / total


def all_words(weights, gold):
    shares = sum(
        (one.argmax(-1) == np.array([place[0] if place else -1 for place in places])).sum(axis=-1)
        for one, places in zip(weights, gold, strict=True)
    ) / sum(len(places) for places in gold)
    layer, head = divmod(int(shares.argmax()), shares.shape[1])
    return layer, head, float(shares[layer, head])


def in_one_number(weights, gold):
    layer, head, share = head_by_head(weights, gold)
    return layer * weights[0].shape[1] + head, 0, share


def head_first(weights, gold):
    layer, head, share = head_by_head(weights, gold)
    return head, layer, share


def from_one(weights, gold):
    layer, head, share = head_by_head(weights, gold)
    return layer + 1, head + 1, share


def no_share(weights, gold):
    return head_by_head(weights, gold)[:2]


RIGHT = {
    "shift_and_mask": [place_by_place, joined, rolled],
    "smoothed_loss": [as_a_mixture, with_eye],
    "masks_at": [by_rules, one_by_one],
    "fault_in_decoder": [by_slopes, by_noise],
    "most_aligned_head": [head_by_head, in_arrays],
}
WRONG = {
    "shift_and_mask": [
        (not_shifted, "labels as they are"),
        (hundred_left, "still -100"),
        (future_seen, "later words"),
        (upper, "upside down"),
        (strictly_before, "cannot look at itself"),
        (padding_left, "padding of the target"),
        (target_in_cross, "Yours is the target's"),
        (all_of_source, "hides nothing"),
        (rows_hidden, "A mask hides columns"),
        (hides_where_true, "must not look"),
        (small_cross, "a row for each place"),
    ],
    "smoothed_loss": [
        (own_share_forgotten, "its own share"),
        (over_the_others, "V - 1 wrong words"),
        (other_way, "other way round"),
        (one_hot_gradient, "right word alone"),
        (lowest_is_zero, "entropy of q"),
        (mean_of_words, "mean over the words"),
        (large_numbers, "overflow"),
        (loss_and_gradient, "three things"),
    ],
    "masks_at": [
        (padding_of_target, "source's padding is hidden"),
        (causal_cross, "no sequence mask"),
        (swapped_cross, "queries come from the target"),
        (masked_step, "nothing has to be hidden"),
        (gpt_sees_all, "hides what comes later"),
        (causal_alone, "hides padding as well"),
        (another_order, "order of the alphabet"),
    ],
    "fault_in_decoder": [
        (future_forgotten, 'never say "future"'),
        (padding_forgotten, 'never say "padding"'),
        (late_forgotten, 'never say "late"'),
        (blind_is_late, 'Before you test "late"'),
        (nothing_wrong, '"none" of every decoder'),
    ],
    "most_aligned_head": [
        (all_words, "without a gold one"),
        (in_one_number, "its number within it"),
        (head_first, "Layer comes first"),
        (from_one, "counted from 0"),
        (no_share, "the layer, the head and the share"),
    ],
}
