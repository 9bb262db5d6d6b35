"""Chapter `modules`: modules and initialisation."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.outcome import Probe
from minigrad import Tensor, nn, no_grad

# --- named_parameters ------------------------------------------------------------------------------------


def _box_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def array(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    def layer() -> SimpleNamespace:
        return SimpleNamespace(weight=array(2, 3), bias=array(3))

    yield "a box with two parameters", SimpleNamespace(weight=array(2, 3), bias=array(3))
    yield (
        "boxes in a box",
        SimpleNamespace(first=layer(), inner=SimpleNamespace(second=layer(), scale=array(1))),
    )
    yield "boxes in a list", SimpleNamespace(layers=[layer(), layer(), layer()], last=layer())
    yield "parameters in a list", SimpleNamespace(tables=[array(4), array(2, 2)], bias=array(3))
    other = SimpleNamespace(name="encoder", size=3, weight=array(3), rate=0.1)
    yield "attributes that are no parameters", other
    steps = SimpleNamespace(steps=[layer(), math.tanh, SimpleNamespace(deep=[layer(), "x"])])
    yield "functions between the boxes of a list, and a list further in", steps
    shared, table = layer(), array(5, 2)
    tied = SimpleNamespace(
        table=table, layers=[shared, layer()], again=shared, output=SimpleNamespace(weight=table)
    )
    yield "a parameter and a box that are shared", tied
    zeros = SimpleNamespace(first=SimpleNamespace(bias=np.zeros(3)), second=SimpleNamespace(bias=np.zeros(3)))
    yield "two parameters that hold the same numbers", zeros
    yield "nothing at all", SimpleNamespace(layers=[])


@exercise(
    difficulty=2,
    minutes=15,
    cases=_box_cases,
    hints="""
Three kinds of things matter: an array, a list, a box. A function that calls itself can take each of them with the name that leads there.

vars(box) gives a box's attributes by name, enumerate(items) a list's by number.

Found once means: the same object. id(array) distinguishes objects even if they hold the same numbers.
""",
    mistakes="""
[no-lists] You skip lists, so the parameters in them are not found, and no error is raised. Search each item of a list.
    elif isinstance(thing, list) -> elif False
A list can hold parameters, too, not only boxes.
    walk(item, f"{name}.{number}") -> isinstance(item, np.ndarray) or walk(item, f"{name}.{number}")
A list can hold boxes, too, not only parameters.
    walk(item, f"{name}.{number}") -> isinstance(item, SimpleNamespace) or walk(item, f"{name}.{number}")
[shared-twice] A parameter that two boxes share is there twice: an optimiser would move it twice in each step. Keep its first name only.
    and id(thing) not in seen ->
A shared parameter has its last name: keep the first.
    and id(thing) not in seen -> ; seen.add(id(thing)) -> [found.pop(key) for key in list(found) if found[key] is thing]
A shared parameter is missing altogether: it belongs there once, under its first name.
    seen.add(id(thing)) -> pass ; return found -> return {key: value for key, value in found.items() if sum(value is other for other in found.values()) == 1}
    and id(thing) not in seen -> ; return found -> return {key: value for key, value in found.items() if sum(value is other for other in found.values()) == 1}
Two parameters that hold the same numbers are two parameters: compare the objects, not what they hold.
    id(thing) -> (thing.shape, thing.tobytes())
The items of a list are counted from 0.
    enumerate(thing) -> enumerate(thing, 1)
Join the names with a dot, also in front of a number.
    f"{name}.{number}" -> f"{name}[{number}]" || f"{name}{number}" || f"{name}_{number}"
    f"{name}.{key}" -> f"{name}{key}" || f"{name}_{key}" || f"{name}/{key}"
A name starts with a dot: there is nothing in front of the first attribute.
    if name else key ->
The name of the list belongs in the address, in front of the number.
    f"{name}.{number}" -> str(number)
The number in the list is missing, so its items share one name, and the last one wins.
    f"{name}.{number}" -> name
An address is the whole path, with the names of all boxes on it: parameters of the same name in two boxes overwrite each other.
    f"{name}.{key}" if name else key -> key
[no-boxes-inside] You do not search the boxes inside.
    walk(item, f"{name}.{key}" if name else key) -> name or walk(item, key)
    walk(item, f"{name}.{key}" if name else key) -> isinstance(item, SimpleNamespace) or walk(item, f"{name}.{key}" if name else key)
What is not an array is not a parameter: leave strings, numbers and functions out.
    isinstance(thing, np.ndarray) and id -> not isinstance(thing, list | SimpleNamespace) and id
The arrays are asked for, not their shapes.
    = thing -> = thing.shape
The arrays are asked for, not copies of their names.
    = thing -> = name
The arrays belong under their names: return a dictionary.
    return found -> return list(found) || return list(found.items()) || return list(found.values())
The keys are the addresses, the values the arrays: you have them the other way round.
    return found -> return {str(value): key for key, value in found.items()}
""",
)
def named_parameters(box):
    found, seen = {}, set()  #: the arrays by address, and the objects met so far

    def walk(thing, name):
        if isinstance(thing, np.ndarray) and id(thing) not in seen:
            seen.add(id(thing))  #: the identity of this array
            found[name] = thing  #: the array itself, under its first name
        elif isinstance(thing, list):
            for number, item in enumerate(thing):  #: the list's items, counted from 0
                walk(item, f"{name}.{number}")  #: the item's address: the list's, a dot, the number
        elif isinstance(thing, SimpleNamespace):
            for key, item in vars(thing).items():  #: the box's attributes with their names
                walk(item, f"{name}.{key}" if name else key)  #: the attribute's address, no dot in front

    walk(box, "")
    return found


# --- mean_square -----------------------------------------------------------------------------------------


def _mean_square_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "no dropout", float(rng.uniform(0.5, 2)), 64, 0.125, 0.0
    yield "BERT's width, initialisation and dropout", 1.0, 768, 0.02, 0.1
    for n, p in ((100, 0.5), (7, 0.25), (3072, 0.9)):
        yield f"n = {n}, p = {p}", float(rng.uniform(0.2, 3)), n, float(rng.uniform(0.01, 0.5)), p
    yield "weights of 0", 2.0, 10, 0.0, 0.3
    yield "an input of 0", 0.0, 10, 0.2, 0.3


@exercise(
    difficulty=2,
    minutes=12,
    cases=_mean_square_cases,
    hints="""
Take the two parts one after the other. What is the mean square of one entry after dropout?

After dropout an entry is x / (1 - p) with probability 1 - p, and 0 otherwise. Square it, then take the mean.

The linear layer multiplies the mean square of its input by n σ².
""",
    mistakes="""
You left dropout out. It keeps the mean of an entry, but not the mean of its square.
    / (1 - p) ->
Dropout divides what is kept by 1 - p, so its square by (1 - p)². But only the share 1 - p of the entries is kept.
    / (1 - p) -> / (1 - p) ** 2
Dropout keeps the share 1 - p of the entries; you forgot that it also divides those by 1 - p.
    / (1 - p) -> * (1 - p)
You have p in place of 1 - p: p is the probability of being dropped.
    / (1 - p) -> * p || / max(p, 1e-9)
You multiply by 1 + p: nearly right for small p only. What is the mean of the square exactly?
    / (1 - p) -> * (1 + p)
You take the root of 1 - p: that is for sizes. Mean squares are asked for.
    / (1 - p) -> / math.sqrt(1 - p)
The weights' standard deviation is given; their variance, its square, belongs in the sum.
    std**2 -> std
y is a sum of n products: the factor n is missing.
    n * ->
The n terms are independent, so their mean squares add up: n, not n².
    n * -> n**2 *
The n terms are independent, so their mean squares add up: n, not its root.
    n * -> math.sqrt(n) *
y is a sum, not a mean, over the n inputs.
    n * -> 1 / n *
That is the size, the root of the mean square. The mean square is asked for.
    return n * std**2 * x2 / (1 - p) -> return math.sqrt(n * std**2 * x2 / (1 - p))
x2 is the mean square of the input already: do not square it again.
    x2 -> x2**2
x2 is the mean square of the input already: no root.
    x2 -> math.sqrt(x2)
The input's own mean square is missing.
    * x2 ->
The weights are not truncated in this exercise: there is no 0.88.
    std**2 -> (0.8796 * std) ** 2 || (0.88 * std) ** 2 || (0.8796256610342398 * std) ** 2
""",
)
def mean_square(x2, n, std, p):
    return n * std**2 * x2 / (1 - p)


# --- tanh_start ------------------------------------------------------------------------------------------


def _width_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for width in (100, 64, 300, int(rng.integers(500, 900)), 2048):
        yield f"layers of width {width}", width


@functools.lru_cache(64)
def _through(std: float, width: int) -> tuple[float, float]:
    """What the page's function of this name measures in twenty layers, with weights of `std` in them."""
    rng, kept = np.random.default_rng(0), []
    x = rng.standard_normal((20, width))
    for _ in range(20):
        weights = std * rng.standard_normal((width, width))
        x = np.tanh(x @ weights)
        kept.append((x, weights))
    dy = rng.standard_normal(x.shape)
    for y, weights in reversed(kept):
        dy = (dy * (1 - y**2)) @ weights.T
    return math.sqrt((x**2).mean()), math.sqrt((dy**2).mean())


def _failing(before: None, std: Any, arguments: Mapping[str, Any]) -> str | None:
    """The condition that fails. What is wider than 300 is measured there, at the same std · √width."""
    width = arguments["width"]
    g = std * math.sqrt(width)
    if abs(g / 1.3 - 1) <= 0.075:  # both hold there at every width, but for the draw of the weights
        return None
    measured = min(width, 300)
    left, gradient = _through(g / math.sqrt(measured), measured)
    if not left >= 0.42 * SLACK:
        return (
            f"an input of size 1 has a size of {left:.2g} after twenty layers, and at least 0.42 is asked for"
        )
    if not 0.6 * SLACK <= gradient <= 1.6 / SLACK:
        return f"a gradient of size 1 has a size of {gradient:.2g} at the first layer, and 0.6 to 1.6 is asked for"
    return None


SLACK = 0.95  # another draw of the weights, or another width, may measure as much less


@exercise(
    difficulty=3,
    minutes=20,
    cases=_width_cases,
    probes=(Probe(lambda arguments: None, _failing, decides=True),),
    rtol=0.075,  # of a mistake: the two conditions leave as much room
    hints="""
Write σ = g / √width, and find out for which g both conditions hold at width 100. By the law, this g then serves every width.

With g = 1 the products keep their size, and the tanh takes some of it away in each layer. So g must make up for that.

If g is too large, the gradient grows on its way back. Try g from 1 to 2 in steps of 0.1.
""",
    mistakes="""
That keeps the size of what goes through the products, and tanh shrinks it in every layer: after twenty layers too little is left. The weights have to make up for the tanh.
    1.3 -> 1 || 0.88 || 1.1
That is PyTorch's gain for tanh, 5/3. It keeps sizes well, but measure the gradient: over twenty layers it grows fivefold.
    1.3 -> 5 / 3
That is He's initialisation, made for ReLU, which loses half of its input. With tanh the gradient grows too much.
    1.3 -> math.sqrt(2)
Such large weights keep the size, because tanh is at most 1. But the gradient explodes: measure it.
    1.3 -> 2 || 3
    return g / math.sqrt(width) -> return 1.0
That is the variance of the weights, or 1 over the width: σ is its root.
    g / math.sqrt(width) -> g**2 / width || g / width || 1 / width
A wider layer has more terms in its sums, so its weights have to be smaller: divide by the root of the width.
    / math.sqrt(width) -> * math.sqrt(width)
That σ serves one width only: it has to shrink as the width grows, as 1 over its root.
    g / math.sqrt(width) -> 0.13 || 0.16 || 0.05 || 0.08
BERT's 0.02 needs a LayerNorm and a residual connection. Here there is neither.
    g / math.sqrt(width) -> 0.02
""",
)
def tanh_start(width):
    g = 1.3  #: the gain that makes up for what tanh takes away
    return g / math.sqrt(width)


# --- error_rate ------------------------------------------------------------------------------------------


class _Drop(nn.Module):
    """Dropout that drops always the same entries, so that a forgotten eval() gives the same number each time."""

    def __init__(self, keep: np.ndarray) -> None:
        self.keep = keep

    def forward(self, x: Tensor) -> Tensor:
        return x * Tensor(2.0 * self.keep) if self.training else x


class _Turned(nn.Sequential):
    """A model whose own forward is another one in training."""

    def forward(self, x: Tensor) -> Tensor:
        scores = super().forward(x)
        return -scores if self.training else scores


class _Product(nn.Module):
    """A linear layer of given weights, which takes no draw from the learner's generator."""

    def __init__(self, weight: np.ndarray) -> None:
        self.weight = nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


def _tested_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(name: str, training: bool, drop: str, rows: int = 40) -> tuple[Any, ...]:
        first, second = rng.standard_normal((5, 8)), rng.standard_normal((8, 3))
        parts: list[nn.Module] = [_Product(first)]
        if drop == "inside":
            parts.append(_Drop(np.arange(8) % 2 == 0))
        kind = _Turned if drop == "itself" else nn.Sequential
        model = kind(nn.Sequential(*parts), _Product(second)).train(training)
        x = rng.standard_normal((rows, 5))
        labels = (x @ first @ second).argmax(axis=1)
        wrong = rng.choice(rows, rows // 5, replace=False)
        return name, model, x, np.where(np.isin(np.arange(rows), wrong), (labels + 1) % 3, labels)

    yield case("a model in training, with dropout in a box inside", True, "inside")
    yield case("a model in evaluation mode already", False, "inside")
    yield case("a model without dropout", True, "nowhere")
    yield case("a model that behaves differently in training itself", True, "itself")
    yield case("more rows", True, "inside", 90)


def _modes(arguments: Mapping[str, Any]) -> list[bool]:
    return [part.training for part in arguments["model"].modules()]


def _other_mode(before: list[bool], returned: Any, arguments: Mapping[str, Any]) -> str | None:
    now = _modes(arguments)
    if now == before:
        return None
    if len(set(now)) > 1:
        return (
            "afterwards a part of the model is not in the model's mode; train() and eval() switch every box"
        )
    if now[0]:
        return "the model came in evaluation mode and is in training mode afterwards"
    return "the model came in training mode and is in evaluation mode afterwards, so training goes on without dropout"


@exercise(
    difficulty=1,
    minutes=10,
    cases=_tested_cases,
    probes=(Probe(_modes, _other_mode),),
    hints="""
What does no_grad() switch off? Does that include dropout?

model.training is the mode in which the model came. model.train(True) and model.train(False) set it.
""",
    mistakes="""
The model is still in training mode, so dropout falsifies the test. no_grad() stops the recording, not the dropout: call eval().
    model.eval() -> pass
You switch to training mode for the test: eval() belongs there.
    model.eval() -> model.train()
You switch the model's own flag and not that of the boxes inside, where the dropout is. eval() walks the tree.
    model.eval() -> model.training = False ; model.train(was) -> model.training = was
    model.eval() -> model.training = False
[stays-in-evaluation] The model stays in evaluation mode, and the next steps of training have no dropout. Put back the mode in which it came.
    model.train(was) -> pass
[always-trains] You switch to training mode at the end in any case. A model that came in evaluation mode should stay in it.
    model.train(was) -> model.train()
The share of wrong guesses is asked for: you return that of the right ones.
    != labels -> == labels
A share is asked for, not a count.
    .mean() -> .sum()
The highest score of each row is the guess: over which axis do you look for it?
    argmax(axis=1) -> argmin(axis=1)
""",
)
def error_rate(model, x, labels):
    was = model.training  #: the mode in which the model came
    model.eval()
    with no_grad():
        scores = model(Tensor(x)).numpy()  #: the scores in evaluation mode, (n, classes)
    model.train(was)
    return float((scores.argmax(axis=1) != labels).mean())
