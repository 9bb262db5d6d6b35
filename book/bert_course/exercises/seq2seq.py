"""Chapter `seq2seq`: recurrent networks that translate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

START, END, PAD = 2, 3, 0


def _sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


# --- lstm_cell -------------------------------------------------------------------------------------------


def _cell_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(n: int, d: int, H: int, dtype: type = np.float64, size: float = 1.0) -> tuple[np.ndarray, ...]:
        shapes = (n, d), (n, H), (n, H), (d, 4 * H), (H, 4 * H), (4 * H,)
        return tuple((size * rng.standard_normal(shape)).astype(dtype) for shape in shapes)

    yield "3 rows, 5 inputs, a state of 4", *draw(3, 5, 4)
    yield "one row, one input, a state of 1", *draw(1, 1, 1)
    yield "as many inputs as the state is long", *draw(2, 6, 6)
    yield "float32", *draw(4, 3, 7, np.float32)
    yield "gates far open and far shut", *draw(3, 4, 5, size=2.5)
    x, h, c, *weights = draw(2, 3, 4)
    yield "the first step, from zeros", x, h * 0, c * 0, *weights


@exercise(
    difficulty=1,
    minutes=12,
    cases=_cell_cases,
    hints="""
Compute x @ W_x + h @ W_h + b once, for all gates. It has 4 H columns: cut it into i, f, g and o.

i, f and o are gates, numbers from 0 to 1: they go through the logistic function. g is what may be written: it goes through tanh.

The new cell is f times the old cell plus i times g. The new state is o times the tanh of the *new* cell.
""",
    mistakes="""
Your columns are in another order. They come as i, f, g, o: input gate, forget gate, candidate, output gate.
    i, f, g, o = np.split -> f, i, g, o = np.split || i, f, o, g = np.split || i, g, f, o = np.split || o, f, g, i = np.split || i, o, f, g = np.split
g goes through the logistic function in your cell, so nothing negative is ever written. The candidate goes through tanh.
    np.tanh(g) -> _sigmoid(g)
The candidate g needs its tanh.
    np.tanh(g) -> g
Your gates go through tanh. A gate is a share from 0 to 1, so it goes through the logistic function.
    _sigmoid(i), _sigmoid(f), _sigmoid(o) -> np.tanh(i), np.tanh(f), np.tanh(o)
There is no forget gate in your cell, as in the first LSTM of 1997. What is in the cell can never leave it. Multiply the old cell by f.
    f * c + -> c +
You add 1 inside the forget gate, as TensorFlow's cell does. Here b holds all of the bias.
    _sigmoid(f) -> _sigmoid(f + 1)
You write with 1 - f, as a GRU does. An LSTM has an input gate of its own, i.
    i * g -> (1 - f) * g
You keep 1 - i of the old cell, as a GRU does. An LSTM has a forget gate of its own, f.
    f * c + -> (1 - i) * c +
The input gate is missing: what is written is i times g.
    + i * g -> + g
You carry on the state h instead of the cell: f multiplies c.
    f * c + -> f * h +
The new state lacks a tanh: it is o times the tanh of the new cell.
    o * np.tanh(c_new) -> o * c_new
The new cell goes through the logistic function in your state. The state is o times the tanh of the new cell.
    np.tanh(c_new) -> _sigmoid(c_new)
You carry the tanh of the cell on. The tanh is for the state only. The cell itself is f times the old cell plus i times g.
    return h_new, c_new -> return h_new, np.tanh(c_new)
Your gates take every fourth column. The columns of a gate lie together: the first H are those of the input gate, the next H those of the forget gate.
    np.split(z, 4, axis=-1) -> np.moveaxis(z.reshape(len(z), -1, 4), -1, 0)
The state shows the old cell. What was just written must be visible: take the tanh of the new cell.
    np.tanh(c_new) -> np.tanh(c)
The output gate is missing: the state is o times the tanh of the new cell.
    o * np.tanh(c_new) -> np.tanh(c_new)
You return the cell first. The exercise asks for the state and then the cell.
    return h_new, c_new -> return c_new, h_new
Your gates do not see the state: h @ W_h is missing.
    + h @ W_h ->
Your gates look at the cell. In this LSTM they see the word and the state: h @ W_h.
    h @ W_h -> c @ W_h
The bias is missing.
    + b ->
""",
)
def lstm_cell(x, h, c, W_x, W_h, b):
    z = x @ W_x + h @ W_h + b  #: gates and candidate before σ and tanh, (n, 4 H)
    i, f, g, o = np.split(z, 4, axis=-1)  #: H columns for each of i, f, g and o
    i, f, o = _sigmoid(i), _sigmoid(f), _sigmoid(o)  #: the gates, shares from 0 to 1
    g = np.tanh(g)  #: the candidate, from -1 to 1
    c_new = f * c + i * g  #: the new cell: what is kept, plus what is written
    h_new = o * np.tanh(c_new)  #: the new state: what the output gate lets through
    return h_new, c_new


# --- linear_through_time ---------------------------------------------------------------------------------


def _time_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(T: int, H: int, dtype: type = np.float64) -> tuple[np.ndarray, ...]:
        W = rng.standard_normal((H, H)) / math.sqrt(H)
        return tuple(a.astype(dtype) for a in (rng.standard_normal((T, H)), W, rng.standard_normal(H)))

    yield "5 steps, a state of 3", *draw(5, 3)
    yield "2 steps", *draw(2, 4)
    yield "one step", *draw(1, 3)
    yield "as many steps as the state is long", *draw(4, 4)
    yield "40 steps", *draw(40, 6)
    yield "float32", *draw(6, 5, np.float32)


@exercise(
    difficulty=3,
    minutes=25,
    cases=_time_cases,
    rtol=1e-8,
    hints="""
Write the last state of a network of three steps without brackets: h_3 = x_3 + x_2 W + x_1 W W. Which of these terms has the gradient of x_1? W occurs in several places, and each of them gives a term of its gradient.

Go from the last step to the first. At step t you hold dh_t. Since h_t = x_t + h_{t-1} W, the gradient of x_t is dh_t, the step's term of dW is the outer product of h_{t-1} and dh_t, and dh_{t-1} = dh_t Wᵀ.

You need the states h_0 to h_{T-1}: run forwards first, and keep them. h_0 is zero.
""",
    mistakes="""
You go back through W. A state moves forwards by h W, so its gradient goes back through the transpose, dh Wᵀ.
    dh @ W.T -> dh @ W
You keep one step's term of dW. The same W is used at each step, so the terms of all steps are added.
    dW += -> dW =
Your terms of dW are transposed. For h W, the gradient of W is hᵀ dh: a row for each entry of the state before.
    np.outer(before[t], dh) -> np.outer(dh, before[t])
You multiply dh by x_t. That is the gradient of a matrix that multiplies x, but W multiplies the state before, h_{t-1}.
    np.outer(before[t], dh) -> np.outer(X[t], dh)
You multiply dh by the state after the step. W multiplies the state before it, h_{t-1}.
    np.outer(before[t], dh) -> np.outer(X[t] + before[t] @ W, dh)
Your dh is one step too far back when dW gets its term. At step t the term is h_{t-1}ᵀ dh_t.
    np.outer(before[t], dh) -> np.outer(before[t], dh @ W.T)
Your dX is one step too far back. h_t contains x_t itself, so the gradient of x_t is dh_t.
    dX[t] = dh -> dX[t] = dh @ W.T
You go forwards in time. The gradient is given for the last state, and each step back multiplies it by Wᵀ.
    range(len(X) - 1, -1, -1) -> range(len(X))
Each step back needs its Jacobian: dh_{t-1} = dh_t Wᵀ. Your dh stays what it is at the end.
    dh = dh @ W.T -> dh = dh * 1
This network is linear, so it has no tanh.
    x + before[-1] @ W -> np.tanh(x + before[-1] @ W)
You return dW first. The exercise asks for dX and then dW.
    return dX, dW -> return dW, dX
Your states forget: h_t = x_t + h_{t-1} W.
    x + before[-1] @ W -> x
W ** k is the power of each entry. The power of a matrix is a product with itself: np.linalg.matrix_power, or one product a step.
    dX[t] = dh -> dX[t] = dh @ W.T ** (len(X) - 1 - t) ; np.outer(before[t], dh) -> np.outer(before[t], dX[t]) ; dh = dh @ W.T -> pass
The rows of your dX are in the order in which they are found, from the last input to the first. Turn them round.
    return dX, dW -> return dX[::-1], dW
""",
)
def linear_through_time(X, W, dh):
    before = [np.zeros_like(dh)]  #: the state before the first step, h_0 = 0
    for x in X[:-1]:  #: every input but the last
        before.append(x + before[-1] @ W)  #: the state after this input
    dX, dW = np.zeros_like(X), np.zeros_like(W)  #: zeros, in both gradients' shapes
    for t in range(len(X) - 1, -1, -1):  #: every step, from the last to the first
        dX[t] = dh  #: the gradient of h_t, which is also that of x_t
        dW += np.outer(before[t], dh)  #: this step's term of dW, from h_{t-1} and dh_t
        dh = dh @ W.T  #: the gradient of the state before, h_{t-1}
    return dX, dW


# --- hold_a_bit ------------------------------------------------------------------------------------------

WORDS = ("few", "many", "stop", "other")


def _runner(*phrases: str) -> Callable[..., np.ndarray]:
    """run(w_f, b_f, w_i, b_i, w_g, b_g): the cell after each phrase, as a whole number where it is near, else coarsely."""

    def run(w_f: Any, b_f: float, w_i: Any, b_i: float, w_g: Any, b_g: float) -> np.ndarray:
        found = []
        for phrase in phrases:
            c = 0.0
            for word in phrase.split():
                k = WORDS.index(word)
                gates = (_sigmoid(np.float64(np.asarray(w)[k] + b)) for w, b in ((w_f, b_f), (w_i, b_i)))
                f, i = gates
                c = f * c + i * math.tanh(np.asarray(w_g)[k] + b_g)
            whole = abs(c - round(c)) < 0.1
            between = 0.5 if abs(c) < 0.6 else 0.75 if abs(c) < 1 else 1.5
            found.append(float(round(c)) if whole else math.copysign(between, c))
        return np.array(found)

    return run


def _bit_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    long = " other" * 50
    yield "a count alone", _runner("few", "many")
    yield "one other word after a count", _runner("few other", "many other")
    yield "ten other words after a count", _runner("few" + " other" * 10, "many" + " other" * 10)
    yield "fifty other words after a count", _runner("few" + long, "many" + long)
    yield "a full stop after a count", _runner("few stop", "many other stop", "few stop other other")
    yield "a second count", _runner("few other many", "many other few", "few few", "many other many")
    yield "no count at all", _runner("other other other", "stop other", "other" + long)
    drawn = [" ".join(rng.choice(WORDS, 12)) for _ in range(6)]
    yield "words at random", _runner(*drawn)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_bit_cases,
    hints="""
For each of the four words, write down which f, i and g you want, as 0 or 1 (g: -1, 0 or 1). A gate of 0 or 1 comes from a number far from 0: σ(-10) is below 0.0001, σ(10) is above 0.9999.

The cell holds when f = 1 and nothing is written. It is set when f = 0, i = 1 and g is the new value: with f = 1 the new value would be added to the old one.

With one number in w for each word and one bias, f is open for `other` with b_f = 10 and 0 in w_f, and shut for the other three words with -20 in w_f.
""",
    mistakes="""
A second count is added to the first one, because your forget gate is open at a count. Shut it there, so that the new count replaces the old one.
    [-20, -20, -20, 0] -> [0, 0, -20, 0]
The full stop does not empty the cell. Shut the forget gate at `stop`.
    -20, -20, 0], 10 -> -20, 0, 0], 10
The cell fades from word to word, because your forget gate at `other` is not near enough to 1. Over k words, f is raised to the power k.
    , 0], 10 -> , 0], 0 || , 0], 1 || , 0], 2 || , 0], 3 || , 0], 4 || , 0], 5
    [-20, -20, -20, 0], 10 -> [-1, -1, -1, 0], 0
Your forget gate is the other way round. A gate of 1 keeps, and a gate of 0 forgets.
    [-20, -20, -20, 0], 10 -> [20, 20, 20, 0], -10
Your forget gate is open at every word, so nothing is ever replaced or emptied.
    [-20, -20, -20, 0], 10 -> [0, 0, 0, 0], 10
Your forget gate is shut at every word, so the cell holds nothing.
    [-20, -20, -20, 0], 10 -> [-20, -20, -20, 0], -10 || [-20, -20, -20, -20], 10
Your input gate is half open at a count, so half of the candidate is written.
    [20, 20, 0, 0], -10 -> [0, 0, 0, 0], 0 || [10, 10, 0, 0], -10
Your input gate is shut at a count, so nothing is ever written.
    [20, 20, 0, 0], -10 -> [0, 0, 0, 0], -10 || [-20, -20, 0, 0], 10
Only one of the two counts is written. At the other count, your input gate is shut or your candidate is 0.
    [20, 20, 0, 0], -10 -> [20, 0, 0, 0], -10 || [0, 20, 0, 0], -10
    [10, -10, 0, 0], 0 -> [10, 0, 0, 0], 0 || [10, -10, 0, 0], 10
The cell must be positive after few and negative after many.
    [10, -10, 0, 0], 0 -> [-10, 10, 0, 0], 0
Your candidate is too small, because tanh(1) is 0.76. It should be near 1 or -1.
    [10, -10, 0, 0], 0 -> [1, -1, 0, 0], 0
Both counts write the same value. The sign of g has to distinguish them.
    [10, -10, 0, 0], 0 -> [10, 10, 0, 0], 0 || [0, 0, 0, 0], 10
""",
)
def hold_a_bit(run):
    w_f, b_f = [-20, -20, -20, 0], 10  #: a forget gate open at other only
    w_i, b_i = [20, 20, 0, 0], -10  #: an input gate open at few and many only
    w_g, b_g = [10, -10, 0, 0], 0  #: a candidate near 1 at few, near -1 at many
    return run(w_f, b_f, w_i, b_i, w_g, b_g)


# --- decoder_fault --------------------------------------------------------------------------------------------

State = tuple[np.ndarray, np.ndarray]


def _model(rng: np.random.Generator, fault: str, H: int = 6) -> SimpleNamespace:
    """A translator with random weights and at most one fault."""
    table = rng.standard_normal((12, H))
    W_x, W_h = rng.standard_normal((2, H, 4 * H)) / math.sqrt(H)
    b = rng.standard_normal(4 * H)
    out = rng.standard_normal((H, 12))

    def cell(x: np.ndarray, h: np.ndarray, c: np.ndarray) -> State:
        z = x @ W_x + h @ W_h + b
        i, f, g, o = np.split(z, 4)
        if fault == "gates":
            i, f = f, i
        elif fault == "gates, g and o":
            g, o = o, g
        elif fault == "gates, f and o":
            f, o = o, f
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(c), c

    def labels(target: Any) -> np.ndarray:
        return np.array([*target] if fault == "end" else [*target, END])

    def fed(labels: Any) -> np.ndarray:
        if fault == "shift":
            return np.array([*labels])
        if fault == "shift, end first":
            return np.array([END, *labels[:-1]])
        return np.array([START, *labels[:-1]])

    def encode(ids: Any, mask: Any) -> State:
        state = np.zeros(H), np.zeros(H)
        for word, read in zip(ids, mask, strict=True):
            if read or fault == "padding":
                state = cell(table[word], *state)
        return state

    def step(state: State, word: int) -> tuple[np.ndarray, State]:
        before = (np.zeros(H), np.zeros(H)) if fault == "state, from zero" else state
        after = cell(table[word], *before)
        if fault == "state, the cell is not kept":
            after = after[0], state[1]
        return after[0] @ out, state if fault == "state" else after

    return SimpleNamespace(
        labels=labels, fed=fed, encode=encode, step=step, table=table, W_x=W_x, W_h=W_h, b=b
    )


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    names = {
        "none": "a model without a fault",
        "end": "no end token in the labels",
        "shift": "the labels are fed as they are",
        "padding": "padding is read like words",
        "gates": "two gates change places",
        "state": "a step gives back the state that it got",
        "gates, g and o": "another two parts change places",
        "gates, f and o": "two parts change places that one step does not show in its cell",
        "state, from zero": "each step starts from zeros",
        "state, the cell is not kept": "a step gives back the old cell",
        "shift, end first": "the decoder starts with an end token",
    }
    for fault, name in names.items():
        yield name, _model(rng, fault)
    yield "another model without a fault", _model(rng, "none", H=3)


@exercise(
    difficulty=2,
    minutes=30,
    cases=_fault_cases,
    hints="""
Test the parts in the order in which they depend on each other: the labels, what is fed, the encoder without padding, the encoder with padding, a step.

You know the right labels of [5, 6, 7], which are [5, 6, 7, 3], and what is then fed: [2, 5, 6, 7].

For the gates, run your own cell from exercise 1 over model.table[ids], from zeros, and compare both parts of the state. For the padding, encode the same words with two zeros after them and a mask of 1 1 0 0. For the state, compare model.step(state, 5)[1] with one step of your own cell.
""",
    mistakes="""
A model whose labels lack the end token passes your tests. It would never learn to stop. The labels of [5, 6, 7] are [5, 6, 7, 3].
    list(labels) != [5, 6, 7, END] -> False
A model that is fed the wrong words passes your tests. Fed the labels as they are, it reads each word that it should predict, and its loss falls to 0 for nothing. What is fed is [2, 5, 6, 7].
    list(model.fed([5, 6, 7, END])) != [START, 5, 6, 7] -> False
You look only at whether what is fed differs from the labels. A decoder that starts with the end token passes: it should start with the start token.
    list(model.fed([5, 6, 7, END])) != [START, 5, 6, 7] -> list(model.fed([5, 6, 7, END])) == [5, 6, 7, END]
A model that reads padding passes your tests. Its translation depends on which other sentences are in the batch. Encode the same words with padding after them.
    not same(padded, short) -> False
You mark the padding as words: the mask must be 0 there.
    [1, 1, 0, 0] -> [1, 1, 1, 1]
A model with its gates in another order passes your tests. Such a model can be trained from new weights, but it reads stored weights wrongly. Compare with a cell of your own.
    not same(short, own) -> False
    "gates in another order" -> "none"
A model whose steps do not carry the state on passes your tests. It writes each word as if it were the first. Compare the state after a step with one of your own cell.
    not same(after, _cell(model, 5, *short)) -> False
You only ask whether a step changes the state. A step that starts from zeros changes it too. Compare with a step of your own cell, from the state that you gave.
    not same(after, _cell(model, 5, *short)) -> same(after, short)
You compare only the states h. The cell c is a part of the state too.
    not same(after, _cell(model, 5, *short)) -> not np.allclose(after[0], _cell(model, 5, *short)[0])
You compare the cells after one word only. The forget gate meets nothing there, as the cell before was 0, and the output gate does not show in the cell. Compare both parts of the state.
    not same(short, own) -> not np.allclose(model.encode([5], [1])[1], _cell(model, 5, *_zeros(model))[1])
You find a fault in every model. A model that passes all tests has the fault "none".
    return "none" -> return "state not carried"
""",
)
def decoder_fault(model):
    labels = model.labels([5, 6, 7])  #: the model's labels of three words
    if list(labels) != [5, 6, 7, END]:
        return "no end token"
    if list(model.fed([5, 6, 7, END])) != [START, 5, 6, 7]:
        return "not shifted"
    short = model.encode([5, 6], [1, 1])  #: the model's state after two words
    own = _cell(model, 6, *_cell(model, 5, *_zeros(model)))  #: a right cell's state after both
    if not same(short, own):
        return "gates in another order"
    padded = model.encode([5, 6, PAD, PAD], [1, 1, 0, 0])  #: the model's state with padding
    if not same(padded, short):
        return "padding is read"
    _, after = model.step(short, 5)  #: the logits, and the model's state after a step
    if not same(after, _cell(model, 5, *short)):
        return "state not carried"
    return "none"


def _zeros(model: SimpleNamespace) -> State:
    return np.zeros(len(model.W_h)), np.zeros(len(model.W_h))


def _cell(model: SimpleNamespace, word: int, h: np.ndarray, c: np.ndarray) -> State:
    """One step of a right cell with the model's weights."""
    return lstm_cell.answer(model.table[word], h, c, model.W_x, model.W_h, model.b)


def same(state: State, other: State) -> bool:
    """Whether both parts of two states agree."""
    return bool(np.allclose(state[0], other[0]) and np.allclose(state[1], other[1]))


# --- forget_bias -----------------------------------------------------------------------------------------


def _bias_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "half of the gradient over 50 steps", 0.5, 50
    yield "half over one step", 0.5, 1
    yield "a tenth over 10 steps", 0.1, 10
    yield "nine tenths over 100 steps", 0.9, 100
    yield "very little over one step", 0.01, 1
    yield "a drawn share and distance", float(rng.uniform(0.2, 0.8)), int(rng.integers(5, 500))


@exercise(
    difficulty=1,
    minutes=10,
    cases=_bias_cases,
    hints="""
If the input and the state have no effect, the forget gate is f = σ(bias) at every step. What is left of the gradient after one step, after two, after k?

The share is f^k, so f is the k-th root of the share. The bias is the number whose logistic function is f.

From f = 1 / (1 + e^-b) comes b = log(f / (1 - f)).
""",
    mistakes="""
You take the inverse of the logistic function of the share, not of the gate. First take the k-th root of the share, because f^k is the share.
    f = share ** (1 / distance) -> f = share ; math.log(f / (1 - f)) -> math.log(f / (1 - f)) / distance
    f = share ** (1 / distance) -> f = share ; math.log(f / (1 - f)) -> math.log(f / (1 - f)) * distance
You take the share for the gate. The gates of all steps are multiplied: the gate is the k-th root of the share.
    share ** (1 / distance) -> share
You return the gate. The bias is the number whose logistic function is that gate.
    math.log(f / (1 - f)) -> f
The sign of the bias is wrong: a gate above one half needs a bias above 0.
    math.log(f / (1 - f)) -> math.log((1 - f) / f)
You return the logarithm of the gate. The inverse of the logistic function is log(f / (1 - f)).
    math.log(f / (1 - f)) -> math.log(f)
You apply the logistic function where you need its inverse, log(f / (1 - f)).
    math.log(f / (1 - f)) -> 1 / (1 + math.exp(-f))
You take the inverse of tanh. A gate goes through the logistic function.
    math.log(f / (1 - f)) -> math.atanh(f)
You divide the share by the distance. The gates of all steps are multiplied: f^k is the share.
    share ** (1 / distance) -> share / distance
You let the gradient lose an equal amount at each step. It loses an equal fraction: f^k is the share.
    share ** (1 / distance) -> 1 - (1 - share) / distance
You raise the share to the power of the distance. It is the gate that is raised to this power: f is the k-th root of the share.
    share ** (1 / distance) -> share**distance
Your distance is one step off: k steps back multiply by k gates.
    (1 / distance) -> (1 / (distance + 1))
You take the square root. The gate is the k-th root of the share.
    (1 / distance) -> (1 / 2)
""",
)
def forget_bias(share, distance):
    f = share ** (1 / distance)  #: each step's gate, the k-th root of the share
    return math.log(f / (1 - f))
