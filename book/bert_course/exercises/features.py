"""Chapter `features`: inputs made of a frozen encoder's layers, a probe's control task, and a pipeline with a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- six_inputs ------------------------------------------------------------------------------------------


def _layer_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, layers, k, length, width, dtype in (
        ("a model of four layers, the last two", 4, 2, 5, 3, np.float64),
        ("a model of twelve layers, the last four", 12, 4, 6, 8, np.float32),
        ("a model of three layers, all of them", 3, 3, 4, 7, np.float64),
        ("a text of one token", 5, 2, 1, 6, np.float64),
    ):
        states = [rng.standard_normal((length, width)).astype(dtype) for _ in range(layers + 1)]
        yield name, states, k, rng.standard_normal(k).astype(dtype), rng.standard_normal(layers).astype(dtype)
    states = [rng.standard_normal((3, 4)) for _ in range(5)]
    yield "scores of a thousand", states, 2, np.array([1000.0, 999.0]), np.array([-1000.0, 0, 1000, 999])


@exercise(
    difficulty=1,
    minutes=15,
    cases=_layer_cases,
    rtol=1e-5,
    atol=1e-6,
    hints="""
states[0] is the embeddings, and states[i] is the output of layer i. So the last k layers are states[-k:], and all layers are states[1:].

A weighted sum needs weights that sum to 1, the softmax of the scores. Subtract the largest score before exp.

np.concatenate(list, axis=-1) puts the vectors of each token side by side.
""",
    mistakes="""
Your sum over all layers includes the embeddings. states[0] is what goes into the first layer, and it is left out.
    zip(softmax(s_all), states[1:], strict=True) -> zip(softmax(np.concatenate([[0], s_all])), states, strict=True) || zip(softmax(s_all), states, strict=False)
Your "last" is one layer too early. states[-1] is the output of the last layer.
    states[-2], -> states[-3], ; states[-1], -> states[-2],
You have exchanged the last layer and the second-to-last.
    states[-2], -> states[-1], ; states[-1], -> states[-2],
The scores need a softmax, so that the weights are positive and sum to 1.
    return e / e.sum() -> return s
Your weights do not sum to 1. Divide by the sum of the exponentials.
    return e / e.sum() -> return e
exp of a large score overflows. Subtract the largest score first, which changes no weight.
    np.exp(s - s.max()) -> np.exp(s)
Your concatenation puts the layers below each other. Each token needs its vectors side by side, so join along the last axis.
    axis=-1 -> axis=0
Your concatenation has the layers in the wrong order. The earliest layer comes first.
    np.concatenate(last, axis=-1) -> np.concatenate(last[::-1], axis=-1)
You take the first k layers, not the last k.
    last = states[-k:] -> last = states[1 : k + 1]
You take the mean of the last layers, whatever the scores are.
    sum(w * x for w, x in zip(softmax(s_last), last, strict=True)) -> sum(last) / k
You take the mean of the layers in both sums, whatever the scores are.
    return e / e.sum() -> return np.full(len(s), 1 / len(s))
Your concatenation has all N layers. It takes the last k.
    np.concatenate(last, axis=-1) -> np.concatenate(states[1:], axis=-1) || np.concatenate(states, axis=-1)
The first of the six inputs is the embeddings, states[0], and not the output of layer 1.
    states[0], -> states[1],
Your weights are the scores divided by their sum. A softmax takes e to the power of the scores first.
    return e / e.sum() -> return s / s.sum()
Your concatenation has the first k layers. It takes the last k.
    np.concatenate(last, axis=-1) -> np.concatenate(states[1 : k + 1], axis=-1)
""",
)
def six_inputs(states, k, s_last, s_all):
    def softmax(s):
        e = np.exp(s - s.max())  #: the exponentials of the scores less the largest
        return e / e.sum()  #: the weights of the sum, which sum to 1

    last = states[-k:]  #: the outputs of the last k layers
    return [
        states[0],  #: the embeddings
        states[-2],  #: the output of the second-to-last layer
        states[-1],  #: the output of the last layer
        sum(w * x for w, x in zip(softmax(s_last), last, strict=True)),  #: the last k layers' weighted sum
        np.concatenate(last, axis=-1),  #: the last k layers side by side, (L, k d)
        sum(w * x for w, x in zip(softmax(s_all), states[1:], strict=True)),  #: all N layers' weighted sum
    ]


# --- mix_as_matrix ---------------------------------------------------------------------------------------


def _matrix_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, count, width, out, gamma in (
        ("two layers", 2, 4, 3, 1.0),
        ("four layers, a scale", 4, 3, 5, 0.7),
        ("one layer", 1, 6, 2, 2.0),
        ("a negative scale", 3, 5, 1, -1.5),
        ("a scale of 0", 2, 3, 3, 0.0),
    ):
        yield name, rng.standard_normal((width, out)), rng.standard_normal(count), gamma


@exercise(
    difficulty=2,
    minutes=20,
    cases=_matrix_cases,
    rtol=1e-6,
    atol=1e-9,
    hints="""
Write the concatenation of two layers as [X_1, X_2]. A product with a matrix of two blocks, one above the other, is X_1 M_1 + X_2 M_2.

The map of the weighted sum is (gamma w_1 X_1 + gamma w_2 X_2) W. Move the numbers to the matrix: X_1 (gamma w_1 W) + X_2 (gamma w_2 W).

So block l of M is gamma w_l W, with w = softmax(s).
""",
    mistakes="""
gamma is missing. It scales every block.
    gamma * w_l * W -> w_l * W
Your blocks do not have the softmax weights. Turn s into w = softmax(s) first.
    w = e / e.sum() -> w = s
Your weights do not sum to 1. Divide by the sum of the exponentials.
    w = e / e.sum() -> w = e
Your blocks lie side by side. The concatenation is n times as long as one layer, so M has n times as many rows, and the blocks lie one above the other.
    axis=0 -> axis=1
All your blocks are equal. Block l belongs to layer l and has its weight w_l.
    gamma * w_l * W -> gamma * W || gamma * W / len(s)
Return the matrix for the concatenation, with n times as many rows as W. You return one block.
    return np.concatenate([gamma * w_l * W for w_l in w], axis=0) -> return gamma * w.sum() * W
Your rows are interleaved: the concatenation has all numbers of the first layer, then all of the next.
    np.concatenate([gamma * w_l * W for w_l in w], axis=0) -> gamma * np.kron(W, w[:, None])
gamma is a factor of the weighted sum. Inside the softmax it makes the weights sharper.
    np.exp(s - s.max()) -> np.exp(gamma * s - (gamma * s).max()) ; gamma * w_l * W -> w_l * W
""",
)
def mix_as_matrix(W, s, gamma):
    e = np.exp(s - s.max())  #: the exponentials of the scores less the largest, (n,)
    w = e / e.sum()  #: the weights of the layers, which sum to 1, (n,)
    return np.concatenate([gamma * w_l * W for w_l in w], axis=0)


# --- control_labels --------------------------------------------------------------------------------------


def _control_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "three words", np.array([4, 7, 4, 9]), np.array([0, 1, 0, 1]), 0
    yield "a word with two labels", np.array([5, 5, 6, 5, 8, 8]), np.array([0, 2, 1, 2, 0, 0]), 1
    yield (
        "tokens without a label",
        np.array([2, 5, 6, 3, 5, 3, 0]),
        np.array([-100, 1, 0, -100, 1, -100, -100]),
        2,
    )
    yield "a word that has a label only here and there", np.array([5, 6, 5, 7]), np.array([-100, 3, 1, 1]), 3
    for name, size, words, classes, seed in (("a rare class", 60, 12, 2, 4), ("many words", 300, 80, 6, 5)):
        labels = np.where(rng.random(size) < 0.85, 0, rng.integers(1, classes, size))
        labels[rng.random(size) < 0.2] = -100
        yield name, rng.integers(0, words, size), labels, seed


@exercise(
    difficulty=2,
    minutes=20,
    cases=_control_cases,
    hints="""
The class depends on the word alone: np.unique(ids[asked]) gives the different words, and each gets one draw.

Draw from the labels themselves, rng.choice(labels[asked], size=number of words). Then a class that is frequent in the real task is frequent in the control task as well.

np.unique(ids, return_inverse=True) shows which word each token is, so that drawn[inverse] gives all tokens their class.
""",
    mistakes="""
Your classes depend on the token, not on the word. The same word must have the same class everywhere, or no probe can learn the task at all.
    rng.choice(labels[asked], size=len(words)) -> rng.choice(labels[asked], size=asked.sum()) ; drawn[inverse] -> drawn
    drawn[inverse] -> np.random.default_rng(seed).permutation(labels[asked])
Your classes are drawn uniformly. Draw from the labels that occur, so that the frequent classes stay frequent.
    rng.choice(labels[asked], size=len(words)) -> rng.choice(np.unique(labels[asked]), size=len(words))
You draw from all labels, and -100 is among them. Draw from those of the tokens that have a label.
    rng.choice(labels[asked], size=len(words)) -> rng.choice(labels, size=len(words))
Tokens without a label must stay without one, -100.
    found = np.full_like(labels, -100) -> found = np.zeros_like(labels)
You only reorder the classes: words of one class still have one class in common. The control task must reveal nothing about the real one.
    drawn[inverse] -> rng.permutation(np.arange(labels.max() + 1))[labels[asked]]
You shuffle the words' own classes among the words. Draw each word's class from the labels of all tokens.
    drawn[inverse] -> rng.permutation([labels[asked][inverse == n][0] for n in range(len(words))])[inverse]
You return the real labels.
    drawn[inverse] -> labels[asked]
You also draw for words that have no label anywhere. Count the different words among the tokens with a label.
    words, inverse = np.unique(ids[asked], return_inverse=True) -> words, inverse = np.unique(ids, return_inverse=True); inverse = inverse[asked]
Your words are in the order of their first occurrence. The classes are drawn for the words in the order of their ids, as np.unique gives them.
    words, inverse = np.unique(ids[asked], return_inverse=True) -> words, first, inverse = np.unique(ids[asked], return_index=True, return_inverse=True); inverse = np.argsort(np.argsort(first))[inverse]
A token without a label gets a class, because its word has one elsewhere. It has to stay without, -100.
    found[asked] = drawn[inverse] -> table = dict(zip(words, drawn)); found = np.array([table.get(word, -100) for word in ids])
""",
)
def control_labels(ids, labels, seed):
    rng = np.random.default_rng(seed)
    asked = labels != -100  #: the tokens that have a label, (n,)
    found = np.full_like(labels, -100)  #: no label for any token yet, (n,)
    words, inverse = np.unique(ids[asked], return_inverse=True)  #: the different words, and each token's word
    drawn = rng.choice(labels[asked], size=len(words))  #: one class for each different word
    found[asked] = drawn[inverse]  #: the class of each labelled token's word
    return found


# --- find_the_fault --------------------------------------------------------------------------------------


class Pipeline:
    """What a run with cached features leaves behind.

    features(): the cache (n, S, L, d), computed anew at each call. states (N + 1, S, L, d): what goes into the first
    layer, and what comes out of each, with eval(). ids, tags (S, L). before, after: the encoder's arrays by name.
    """

    def __init__(self, fault: str, rng: np.random.Generator, layers: int) -> None:
        shape = (3, 6, 4)
        self.states = rng.standard_normal((layers + 1, *shape))
        self.ids = rng.integers(5, 90, shape[:2])
        self.ids[:, 0] = 2
        self.tags = rng.integers(0, 3, shape[:2])
        self.tags[:, 0] = -100
        for row, length in enumerate(rng.integers(3, 6, len(self.ids))):
            self.ids[row, length:] = 0
            self.tags[row, length:] = -100
        if fault == "padding":
            self.tags[self.ids == 0] = 0
        self.before = {f"layer.{n}": rng.standard_normal((2, 2)) for n in range(layers)}
        moved = 0.0 if fault != "trained" else 1e-3 if layers == 2 else 0.5
        moves = list(self.before) if layers == 2 else ["layer.1"]
        self.after = {name: array + moved * (name in moves) for name, array in self.before.items()}
        self._rng, self._fault = rng, fault

    def __repr__(self) -> str:
        return f"a pipeline with {len(self.states) - 1} layers"

    def features(self) -> np.ndarray:
        """All layers' outputs (n, S, L, d), as they are cached."""
        cached = self.states[:-1] if self._fault == "early" else self.states[1:]
        if self._fault == "dropout":
            cached = cached * (self._rng.random(cached.shape) > 0.1) / 0.9
        return cached.copy()


def _pipeline_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for fault in ("none", "dropout", "early", "padding", "trained"):
        for layers in (2, 4):
            name = "a sound pipeline" if fault == "none" else f"a pipeline with the fault {fault!r}"
            yield f"{name}, {layers} layers", Pipeline(fault, rng, layers)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_pipeline_cases,
    hints="""
Four questions: do two calls of features() agree? Do the features equal states[1:]? Has each token of padding (id 0) the tag -100? Are `before` and `after` equal?

Check for dropout first. Features with dropout differ from states[1:] as well, but they also differ from themselves.
""",
    mistakes="""
Call features() twice, and do it first. With dropout on, the same text has different features each time, and these differ from states[1:] as well.
    if not np.array_equal(pipeline.features(), pipeline.features()): -> if False:
You do not compare the features with states[1:]. A slice that begins with the embeddings has as many layers, so no error is raised.
    if not np.array_equal(pipeline.features(), pipeline.states[1:]): -> if False:
You compare with states[:-1]. That slice begins with the embeddings and lacks the last layer, so it is the fault itself.
    pipeline.states[1:]): -> pipeline.states[:-1]):
You do not look at the tags of padding. A tag there is learned, and counts as right, although there is no word.
    if (pipeline.tags[pipeline.ids == 0] != -100).any(): -> if False:
You do not compare the encoder's weights. If they have moved, the features in the cache are those of another encoder.
    if any(not np.array_equal(pipeline.before[name], pipeline.after[name]) for name in pipeline.before): -> if False:
Compare the weights exactly. A small step is a step.
    not np.array_equal(pipeline.before[name], pipeline.after[name]) -> not np.allclose(pipeline.before[name], pipeline.after[name], atol=0.01)
If there is no fault, return "none".
    return "none" -> return None || return ""
Only the last array decides whether the encoder was trained. One array that has moved is enough.
    any(not np.array_equal(pipeline.before[name], pipeline.after[name]) for name in pipeline.before) -> [not np.array_equal(pipeline.before[name], pipeline.after[name]) for name in pipeline.before][-1]
You also want a tag for each token that is no padding. Words may be without one: look at padding alone.
    (pipeline.tags[pipeline.ids == 0] != -100).any() -> ((pipeline.tags != -100) != (pipeline.ids != 0)).any()
You expect padding to have the tag 0. What does not count has -100.
    != -100 -> != 0
You call each cache that differs from the states a fault of dropout. Dropout shows in two calls that differ.
    if not np.array_equal(pipeline.features(), pipeline.features()): -> if not np.array_equal(pipeline.features(), pipeline.states[1:]):
""",
)
def find_the_fault(pipeline):
    if not np.array_equal(pipeline.features(), pipeline.features()):
        return "dropout"
    if not np.array_equal(pipeline.features(), pipeline.states[1:]):
        return "early"
    if (pipeline.tags[pipeline.ids == 0] != -100).any():
        return "padding"
    if any(not np.array_equal(pipeline.before[name], pipeline.after[name]) for name in pipeline.before):
        return "trained"
    return "none"


# --- break_even ------------------------------------------------------------------------------------------


def _even_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "a reader as wide as in the paper", 84_934_656, 37_773_312, 15_000_000
    yield "a small reader", 84_934_656, 100_000, 0
    yield "a reader nearly as large as the encoder", 1000, 990, 0
    yield "a reader as large as the encoder", 500, 500, 0
    yield "a reader larger than the encoder", 500, 800, 100
    yield "as large as the encoder with its head", 500, 550, 50
    yield "a large head", 500, 480, 40
    yield "larger than the encoder, but not than the encoder with its head", 500, 520, 40
    yield "exactly even after some passes", 300, 280, 0
    yield "any numbers", *map(int, (rng.integers(400, 900), rng.integers(350, 399), rng.integers(0, 9)))


@exercise(
    difficulty=2,
    minutes=20,
    cases=_even_cases,
    hints="""
For each token, a forward pass costs 2 FLOPs a weight, and a training pass costs 6. Features cost 2 E once, and 6 R in each pass. Fine-tuning costs 6 (E + H) in each pass.

You look for the smallest whole number n of passes with 2 E + 6 R n < 6 (E + H) n, so n must be larger than E / (3 (E + H - R)).

If R is at least E + H, there is no such n: return 0. Whole numbers need no rounding: E // (3 (E + H - R)) + 1.
""",
    mistakes="""
You leave out the one pass in which the encoder makes the features. It costs 2 FLOPs for each of its weights.
    return encoder // (3 * saved) + 1 -> return 1
At equality, features are not cheaper yet. You look for the smallest n that makes them strictly cheaper.
    return encoder // (3 * saved) + 1 -> return -(-encoder // (3 * saved))
If the reader is at least as large as the encoder and its head, features never become cheaper. Return 0.
    return 0 -> return 1
The features are made by a forward pass only, at 2 FLOPs a weight. A pass that trains costs 6, three times as much.
    encoder // (3 * saved) -> encoder // saved
You count a training pass as 4 FLOPs a weight. The forward pass costs 2, and the backward pass twice as much, 4: together 6.
    encoder // (3 * saved) -> encoder // (2 * saved)
You count a backward pass as 6 FLOPs a weight, and add the forward pass. The 6 include both.
    encoder // (3 * saved) -> encoder // (4 * saved)
You forget the head of the fine-tuned model, which is trained in each of its passes.
    saved = encoder + head - reader -> saved = encoder - reader
Compare the reader with the encoder and its head together. A reader a little larger than the encoder can still win against a large head.
    if saved <= 0: -> if reader >= encoder:
Your n is one too small. There, features are not cheaper yet.
    return encoder // (3 * saved) + 1 -> return encoder // (3 * saved)
You add the head to the reader. The head belongs to the model that is fine-tuned.
    encoder + head - reader -> encoder - head - reader
""",
)
def break_even(encoder, reader, head):
    saved = encoder + head - reader  #: the weights trained in fine-tuning, less those of the reader
    if saved <= 0:
        return 0
    return encoder // (3 * saved) + 1
