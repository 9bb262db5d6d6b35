"""Right answers to the exercises of chapter `transformer`, as learners write them."""

from __future__ import annotations

import numpy as np

# --- shift_and_mask ---------------------------------------------------------------------------------------


def rolled(labels, source, start, pad):
    ids = np.roll(labels, 1, axis=1)
    ids[:, 0] = start
    ids[ids < 0] = pad
    T = labels.shape[1]
    own = ~np.triu(np.ones((T, T), bool), 1) & (ids[:, np.newaxis] != pad)
    return ids, own, np.stack([source != pad] * T, axis=1)


# --- smoothed_loss ----------------------------------------------------------------------------------------


def log_softmax(logits):
    top = np.max(logits)
    return logits - top - np.log(np.sum(np.exp(logits - top)))


def with_eye(logits, label, eps):
    V = len(logits)
    q = (1 - eps) * np.eye(V)[label] + eps * np.ones(V) / V
    log_p = log_softmax(logits)
    entropy = sum(-x * np.log(x) for x in q if x > 0)
    return -np.dot(q, log_p), np.exp(log_p) - q, entropy


# --- masks_at ---------------------------------------------------------------------------------------------


def by_rules(place):
    if place == "decoder, cross-attention":
        return "target", "source", ["source padding"]
    text = "source" if place in ("encoder", "BERT") else "target"
    hidden = [] if "step" in place else [f"{text} padding"]
    return text, text, (["later words"] if text == "target" and hidden else []) + hidden


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


# --- most_aligned_head ------------------------------------------------------------------------------------


def in_arrays(weights, gold):
    hits = total = 0
    for one, places in zip(weights, gold, strict=True):
        wanted = np.array([place[0] if place else -1 for place in places])
        hits = hits + (one.argmax(-1) == wanted).sum(axis=-1)
        total += (wanted >= 0).sum()
    layer, head = divmod(int(hits.argmax()), hits.shape[1])
    return layer, head, hits[layer, head] / total


RIGHT = {
    "shift_and_mask": [rolled],
    "smoothed_loss": [with_eye],
    "masks_at": [by_rules],
    "fault_in_decoder": [by_slopes, by_noise],
    "most_aligned_head": [in_arrays],
}
