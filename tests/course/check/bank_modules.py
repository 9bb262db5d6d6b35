"""Answers to the exercises of chapter 3 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from minigrad import Tensor, no_grad

__all__ = ["RIGHT", "WRONG"]

# --- named_parameters ------------------------------------------------------------------------------------


def with_a_stack(box):
    found, waiting = {}, [("", box)]
    while waiting:
        name, thing = waiting.pop()
        if isinstance(thing, np.ndarray):
            if not any(thing is other for other in found.values()):
                found[name] = thing
            continue
        if isinstance(thing, list):
            inside = [(f"{name}.{i}", item) for i, item in enumerate(thing)]
        elif isinstance(thing, SimpleNamespace):
            inside = [(f"{name}.{key}".lstrip("."), item) for key, item in vars(thing).items()]
        else:
            continue
        waiting += reversed(inside)
    return found


def with_a_generator(box):
    def walk(thing, parts):
        if isinstance(thing, np.ndarray):
            yield ".".join(parts), thing
        items = enumerate(thing) if isinstance(thing, list) else getattr(thing, "__dict__", {}).items()
        for key, item in items:
            yield from walk(item, [*parts, str(key)])

    found, seen = {}, []
    for name, array in walk(box, []):
        if id(array) not in seen:
            seen.append(id(array))
            found[name] = array
    return found


def without_lists(box, prefix=""):
    found = {}
    for key, value in vars(box).items():
        if isinstance(value, np.ndarray):
            found[prefix + key] = value
        elif isinstance(value, SimpleNamespace):
            found.update(without_lists(value, f"{prefix}{key}."))
    return found


def with_lists_of_boxes_alone(box, prefix="", seen=None):
    found, seen = {}, set() if seen is None else seen
    for key, value in vars(box).items():
        if isinstance(value, np.ndarray) and id(value) not in seen:
            seen.add(id(value))
            found[prefix + key] = value
        items = [(f"{prefix}{key}.", value)]
        if isinstance(value, list):
            items = [(f"{prefix}{key}.{i}.", item) for i, item in enumerate(value)]
        for name, item in items:
            if isinstance(item, SimpleNamespace):
                found.update(with_lists_of_boxes_alone(item, name, seen))
    return found


def each_time_it_is_met(box):
    def walk(thing, name):
        if isinstance(thing, np.ndarray):
            return {name: thing}
        items = dict(enumerate(thing)) if isinstance(thing, list) else getattr(thing, "__dict__", {})
        out = {}
        for key, item in items.items():
            out |= walk(item, f"{name}.{key}" if name else str(key))
        return out

    return walk(box, "")


def with_brackets(box):
    found = {}
    for name, array in with_a_stack(box).items():
        parts = [f"[{part}]" if part.isdigit() else f".{part}" for part in name.split(".")]
        found["".join(parts).lstrip(".")] = array
    return found


def by_what_they_hold(box):
    found = {}
    for name, array in each_time_it_is_met(box).items():
        if not any(np.array_equal(array, other) for other in found.values()):
            found[name] = array
    return found


NAMED_RIGHT = [with_a_stack, with_a_generator]
NAMED_WRONG = [
    (without_lists, ("You pass lists by", "is there twice: an optimiser")),
    (with_lists_of_boxes_alone, "In a list there can be parameters, too"),
    (each_time_it_is_met, "A parameter that two boxes share is there twice"),
    (with_brackets, "A dot stands between the names"),
    (by_what_they_hold, "Two parameters that hold the same numbers are two"),
    (lambda box: list(with_a_stack(box)), "return a dictionary"),
    (
        lambda box: {name: a for name, a in with_a_stack(box).items() if "." not in name},
        "You do not ask the boxes inside",
    ),
]

# --- mean_square -----------------------------------------------------------------------------------------


def in_two_parts(x2, n, std, p):
    after_dropout = (1 - p) * x2 / (1 - p) ** 2
    return after_dropout * n * std * std


def by_the_sizes(x2, n, std, p):
    size = math.sqrt(x2) * math.sqrt(n) * std / np.sqrt(1 - p)
    return size**2


SQUARE_RIGHT = [in_two_parts, by_the_sizes]
SQUARE_WRONG = [
    (lambda x2, n, std, p: x2 * n * std**2, "You left dropout out"),
    (lambda x2, n, std, p: x2 * n * (std / (1 - p)) ** 2, "only the share 1 - p of the entries is kept"),
    (lambda x2, n, std, p: x2 * (1 - p) * n * std**2, "you forgot that it also divides"),
    (lambda x2, n, std, p: math.sqrt(x2 * n / (1 - p)) * std, "That is the size"),
    (lambda x2, n, std, p: x2 * n * std / (1 - p), "The weights' standard deviation is given"),
    (lambda x2, n, std, p: x2 * std**2 / (1 - p), "the factor n is missing"),
    (lambda x2, n, std, p: x2 * n / (1 - p), "cases"),
]

# --- tanh_start ------------------------------------------------------------------------------------------


def through(std, width, rng):
    """What is left of a size of 1, and what a gradient is multiplied by, in twenty layers."""
    x, kept = rng.standard_normal((20, width)), []
    for _ in range(20):
        weights = std * rng.standard_normal((width, width))
        x = np.tanh(x @ weights)
        kept.append((x, weights))
    dy = rng.standard_normal(x.shape)
    for y, weights in reversed(kept):
        dy = (dy * (1 - y**2)) @ weights.T
    return math.sqrt((kept[-1][0] ** 2).mean()), math.sqrt((dy**2).mean())


def by_measuring_at_one_width(width):
    for g in np.arange(1, 2, 0.05):
        forward, backward = through(g / 10, 100, np.random.default_rng(0))
        if forward >= 0.42 and 0.6 < backward < 1.6:
            break
    return float(g) / np.sqrt(width)


START_RIGHT = [
    by_measuring_at_one_width,
    lambda width: 1.25 * width**-0.5,
    lambda width: math.sqrt(1.8 / width),
]
START_WRONG = [
    (lambda width: width**-0.5, "tanh shrinks it in every layer"),
    (lambda width: math.sqrt(2 / (width + width)), "tanh shrinks it in every layer"),
    (lambda width: 5 / 3 / math.sqrt(width), "PyTorch's gain for tanh"),
    (lambda width: math.sqrt(2 / width), "He's start"),
    (lambda width: 0.02, "BERT's 0.02"),
    (lambda width: 0.13, "That start serves one width only"),
    (lambda width: 1.69 / width, "That is the variance"),
]

# --- error_rate ------------------------------------------------------------------------------------------


def in_a_try(model, x, labels):
    mode = model.training
    try:
        guesses = model.eval()(Tensor(x)).numpy().argmax(-1)
    finally:
        model.train(mode)
    return np.mean(guesses != labels)


def one_minus_the_right_ones(model, x, labels):
    was_training = model.training
    model.train(False)
    with no_grad():
        guesses = np.argmax(model(Tensor(x)).numpy(), axis=1)
    if was_training:
        model.train()
    return 1 - (guesses == labels).sum() / len(labels)


def as_it_was_given(model, x, labels):
    with no_grad():
        scores = model(Tensor(x)).numpy()
    return (scores.argmax(axis=1) != labels).mean()


def and_stays_there(model, x, labels):
    model.eval()
    return as_it_was_given(model, x, labels)


def and_always_trains_on(model, x, labels):
    model.eval()
    rate = as_it_was_given(model, x, labels)
    model.train()
    return rate


def by_its_own_flag(model, x, labels):
    was, model.training = model.training, False
    rate = as_it_was_given(model, x, labels)
    model.training = was
    return rate


RATE_RIGHT = [in_a_try, one_minus_the_right_ones]
RATE_WRONG = [
    (as_it_was_given, "The model is still in training mode"),
    (and_stays_there, ("evaluation mode afterwards", "The model stays in evaluation mode")),
    (and_always_trains_on, ("training mode afterwards", "You switch to training mode at the end")),
    (by_its_own_flag, "the boxes inside"),
    (lambda model, x, labels: 1 - in_a_try(model, x, labels), "that of the right ones"),
    (lambda model, x, labels: in_a_try(model, x, labels) * len(x), "A share is asked for"),
]

RIGHT = {
    "named_parameters": NAMED_RIGHT,
    "mean_square": SQUARE_RIGHT,
    "tanh_start": START_RIGHT,
    "error_rate": RATE_RIGHT,
}
WRONG = {
    "named_parameters": NAMED_WRONG,
    "mean_square": SQUARE_WRONG,
    "tanh_start": START_WRONG,
    "error_rate": RATE_WRONG,
}
