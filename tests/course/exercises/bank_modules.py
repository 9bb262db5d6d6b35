"""Answers to the exercises of `modules` as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from minigrad import Tensor, no_grad

RIGHT = {}
WRONG = {}

# --- named_parameters ------------------------------------------------------------------------------------


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


RIGHT["named_parameters"] = [with_a_generator]
WRONG["named_parameters"] = [(without_lists, ("[no-lists]", "[shared-twice]"))]

# --- mean_square -----------------------------------------------------------------------------------------


def by_the_sizes(x2, n, std, p):
    size = math.sqrt(x2) * math.sqrt(n) * std / np.sqrt(1 - p)
    return size**2


RIGHT["mean_square"] = [by_the_sizes]

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


RIGHT["tanh_start"] = [
    by_measuring_at_one_width,
    lambda width: 1.25 * width**-0.5,
    lambda width: math.sqrt(1.8 / width),
]

WRONG["tanh_start"] = [
    (lambda width: 1.2 / math.sqrt(width), "a size of 0.54 at the first layer, and 0.6 to 1.6 is asked for"),
    (lambda width: 1.05 / np.sqrt(width), "after twenty layers, and at least 0.42 is asked for"),
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


RIGHT["error_rate"] = [in_a_try, one_minus_the_right_ones]
WRONG["error_rate"] = [
    (and_stays_there, ("evaluation mode afterwards", "[stays-in-evaluation]")),
    (and_always_trains_on, ("training mode afterwards", "[always-trains]")),
]
