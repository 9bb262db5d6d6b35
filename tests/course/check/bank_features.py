"""Answers to the exercises of chapter 21 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import numpy as np

__all__ = ["RIGHT", "WRONG"]

# --- six_inputs ------------------------------------------------------------------------------------------


def soft(s):
    p = np.exp(s - np.max(s))
    p /= p.sum()
    return p


def stacked(states, k, s_last, s_all):
    X = np.stack(states)
    n = len(X)
    side_by_side = np.hstack([X[i] for i in range(n - k, n)])
    return [
        X[0],
        X[n - 2],
        X[n - 1],
        np.einsum("n,nld->ld", soft(s_last), X[n - k :]),
        side_by_side,
        np.tensordot(soft(s_all), X[1:], axes=1),
    ]


def with_loops(states, k, s_last, s_all):
    found = [states[0], states[-2], states[-1]]
    for s, layers in ((s_last, states[len(states) - k :]), (s_all, states[1:])):
        mix = np.zeros_like(states[0])
        for weight, x in zip(soft(s), layers, strict=True):
            mix = mix + weight * x
        found.append(mix)
    found.insert(4, np.concatenate(states[len(states) - k :], axis=1))
    return tuple(found)


def counts_the_embeddings(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[5] = sum(w * x for w, x in zip(soft(s_all), states, strict=False))
    return found


def one_too_early(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[1], found[2] = states[len(states) - 3], states[len(states) - 2]
    return found


def last_two_exchanged(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[1], found[2] = found[2], found[1]
    return found


def without_softmax(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[3] = np.tensordot(s_last, np.stack(states[-k:]), axes=1)
    found[5] = np.tensordot(s_all, np.stack(states[1:]), axes=1)
    return found


def below_each_other(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[4] = np.vstack(states[-k:])
    return found


def backwards(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[4] = np.hstack([states[-i - 1] for i in range(k)])
    return found


def layer_one_first(states, k, s_last, s_all):
    return [states[1], *stacked(states, k, s_last, s_all)[1:]]


def means(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[3], found[5] = np.mean(states[-k:], axis=0), np.mean(states[1:], axis=0)
    return found


def joins_all(states, k, s_last, s_all):
    found = stacked(states, k, s_last, s_all)
    found[4] = np.hstack(states[1:])
    return found


INPUTS_RIGHT = [stacked, with_loops]
INPUTS_WRONG = [
    (counts_the_embeddings, "includes the embeddings"),
    (one_too_early, "one layer too early"),
    (last_two_exchanged, "exchanged the last layer"),
    (without_softmax, "need a softmax"),
    (below_each_other, "below each other"),
    (backwards, "in the wrong order"),
    (layer_one_first, "and not the output of layer 1"),
    (means, "in both sums"),
    (joins_all, "Your concatenation has all N layers"),
]

# --- mix_as_matrix ---------------------------------------------------------------------------------------


def kronecker(W, s, gamma):
    return gamma * np.kron(soft(s)[:, None], W)


def block_by_block(W, s, gamma):
    d, out = W.shape
    M = np.empty((len(s) * d, out))
    for i, w in enumerate(soft(s)):
        M[i * d : (i + 1) * d] = w * gamma * W
    return M


def no_scale(W, s, gamma):
    return kronecker(W, s, 1.0)


def raw_scores(W, s, gamma):
    return gamma * np.vstack([one * W for one in s])


def sideways(W, s, gamma):
    return np.hstack([gamma * w * W for w in soft(s)])


def interleaved(W, s, gamma):
    return gamma * (W[:, None, :] * soft(s)[None, :, None]).reshape(-1, W.shape[1])


def the_same_block(W, s, gamma):
    return gamma * np.tile(W, (len(s), 1))


MATRIX_RIGHT = [kronecker, block_by_block]
MATRIX_WRONG = [
    (no_scale, "gamma is missing"),
    (raw_scores, "do not have the softmax weights"),
    (sideways, "lie side by side"),
    (interleaved, "Your rows are interleaved"),
    (the_same_block, "All your blocks are equal"),
]

# --- control_labels --------------------------------------------------------------------------------------


def with_a_dictionary(ids, labels, seed):
    rng = np.random.default_rng(seed)
    words = sorted({int(i) for i, label in zip(ids, labels, strict=True) if label != -100})
    of = dict(zip(words, rng.choice(labels[labels != -100], size=len(words)), strict=True))
    return np.array([-100 if label == -100 else of[int(i)] for i, label in zip(ids, labels, strict=True)])


def with_a_table(ids, labels, seed):
    rng = np.random.default_rng(seed)
    asked = labels >= 0
    words = np.unique(ids[asked])
    table = np.full(ids.max() + 1, -100)
    table[words] = rng.choice(labels[asked], size=words.size)
    return np.where(asked, table[ids], -100)


def a_draw_for_each_token(ids, labels, seed):
    rng = np.random.default_rng(seed)
    asked = labels >= 0
    found = labels.copy()
    found[asked] = rng.choice(labels[asked], size=asked.sum())
    return found


def evenly(ids, labels, seed):
    rng = np.random.default_rng(seed)
    asked = labels >= 0
    words = np.unique(ids[asked])
    table = np.full(ids.max() + 1, -100)
    table[words] = rng.choice(np.unique(labels[asked]), size=words.size)
    return np.where(asked, table[ids], -100)


def zeros_elsewhere(ids, labels, seed):
    found = with_a_table(ids, labels, seed)
    found[labels == -100] = 0
    return found


def shuffled(ids, labels, seed):
    rng = np.random.default_rng(seed)
    found = labels.copy()
    found[labels >= 0] = rng.permutation(labels[labels >= 0])
    return found


def the_real_ones(ids, labels, seed):
    return labels.copy()


CONTROL_RIGHT = [with_a_dictionary, with_a_table]
CONTROL_WRONG = [
    (a_draw_for_each_token, "depend on the token, not on the word"),
    (shuffled, "depend on the token, not on the word"),
    (evenly, "drawn evenly"),
    (zeros_elsewhere, "must stay without one"),
    (the_real_ones, "You return the real labels"),
]

# --- find_the_fault --------------------------------------------------------------------------------------


def all_answers(pipeline):
    once, again = pipeline.features(), pipeline.features()
    moved = [k for k, a in pipeline.before.items() if (a != pipeline.after[k]).any()]
    return {
        "dropout": (once != again).any(),
        "early": (once == again).all() and (once != pipeline.states[1:]).any(),
        "padding": ((pipeline.ids == 0) & (pipeline.tags >= 0)).any(),
        "trained": bool(moved),
    }


def first_that_is_true(pipeline):
    return next((name for name, is_so in all_answers(pipeline).items() if is_so), "none")


def by_the_last_layer(pipeline):
    x = pipeline.features()
    if not np.array_equal(x, pipeline.features()):
        return "dropout"
    if (x[-1] == pipeline.states[-2]).all():
        return "early"
    if np.any(pipeline.tags[pipeline.ids == 0] >= 0):
        return "padding"
    same = all((pipeline.after[k] == v).all() for k, v in pipeline.before.items())
    return "none" if same else "trained"


def but(fault):
    def answer(pipeline):
        found = {k: v for k, v in all_answers(pipeline).items() if k != fault}
        return next((name for name, is_so in found.items() if is_so), "none")

    answer.__qualname__ = f"but({fault!r})"
    return answer


def roughly(pipeline):
    found = first_that_is_true(pipeline)
    if found == "trained" and all(
        np.allclose(pipeline.after[k], v, atol=0.1) for k, v in pipeline.before.items()
    ):
        return "none"
    return found


def says_nothing(pipeline):
    found = first_that_is_true(pipeline)
    return None if found == "none" else found


def dropout_last(pipeline):
    if not np.allclose(pipeline.features(), pipeline.states[1:]):
        return "early"
    return first_that_is_true(pipeline)


FAULT_RIGHT = [first_that_is_true, by_the_last_layer]
FAULT_WRONG = [
    (dropout_last, "Call features() twice, and do it first"),
    (but("early"), "You do not compare the features with states[1:]"),
    (but("padding"), "You do not look at the tags of padding"),
    (but("trained"), "You do not compare the encoder's weights"),
    (roughly, "Compare the weights exactly"),
    (says_nothing, 'If there is no fault, return "none"'),
]

# --- break_even ------------------------------------------------------------------------------------------


def by_counting(encoder, reader, head):
    if reader >= encoder + head:
        return 0
    n = 1
    while 2 * encoder + 6 * reader * n >= 6 * (encoder + head) * n:
        n += 1
    return n


def by_division(encoder, reader, head):
    gain = 6 * (encoder + head - reader)
    return int(2 * encoder // gain) + 1 if gain > 0 else 0


def at_equality(encoder, reader, head):
    n = by_division(encoder, reader, head)
    even = n > 1 and 2 * encoder == 6 * (encoder + head - reader) * (n - 1)
    return n - even


def without_the_head(encoder, reader, head):
    return by_division(encoder, reader, 0)


def never_beyond_the_encoder(encoder, reader, head):
    return 0 if reader >= encoder else by_division(encoder, reader, head)


def always_one(encoder, reader, head):
    return int(reader < encoder + head)


def one_for_never(encoder, reader, head):
    return max(by_division(encoder, reader, head), 1)


def the_reader_is_free(encoder, reader, head):
    return by_division(encoder, 0, head)


def six_for_the_features(encoder, reader, head):
    gain = encoder + head - reader
    return encoder // gain + 1 if gain > 0 else 0


EVEN_RIGHT = [by_counting, by_division]
EVEN_WRONG = [
    (at_equality, "At equality"),
    (without_the_head, "You forget the head"),
    (never_beyond_the_encoder, "Compare the reader with the encoder and its head together"),
    (always_one, "You leave out the one pass"),
    (one_for_never, "Return 0"),
    (the_reader_is_free, "You forget that the reader"),
    (six_for_the_features, "forward pass only"),
]

RIGHT = {
    "six_inputs": INPUTS_RIGHT,
    "mix_as_matrix": MATRIX_RIGHT,
    "control_labels": CONTROL_RIGHT,
    "find_the_fault": FAULT_RIGHT,
    "break_even": EVEN_RIGHT,
}
WRONG = {
    "six_inputs": INPUTS_WRONG,
    "mix_as_matrix": MATRIX_WRONG,
    "control_labels": CONTROL_WRONG,
    "find_the_fault": FAULT_WRONG,
    "break_even": EVEN_WRONG,
}
