"""Answers to the exercises of chapter 2 as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

__all__ = ["RIGHT", "WRONG"]

# --- gradients -------------------------------------------------------------------------------------------


def by_number_of_users(graph, output):
    """Kahn's algorithm: a value is visited when all its users have been."""
    users = dict.fromkeys(graph, 0)
    for uses in graph.values():
        for source, _ in uses:
            users[source] += 1
    grad = {name: float(name == output) for name in graph}
    ready = [name for name in graph if users[name] == 0]
    while ready:
        name = ready.pop()
        for source, slope in graph[name]:
            grad[source] = grad[source] + slope * grad[name]
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    return grad


def all_paths(graph, output):
    """The sum over all paths of the product of their slopes."""
    grad = dict.fromkeys(graph, 0.0)

    def follow(name, product):
        grad[name] += product
        for source, slope in graph[name]:
            follow(source, product * slope)

    follow(output, 1.0)
    return grad


def forward_mode(graph, output):
    """From each value on its own, forward to the output."""
    grad = {}
    for start in graph:
        moved = {}
        for name, uses in graph.items():
            moved[name] = sum(moved[s] * slope for s, slope in uses) + (1.0 if name == start else 0.0)
        grad[start] = moved[output]
    return grad


def recursive_sort(graph, output):
    order, seen = [], set()

    def visit(name):
        if name not in seen:
            seen.add(name)
            for source, _ in graph[name]:
                visit(source)
            order.append(name)

    visit(output)
    grad = defaultdict(float, {output: 1.0})
    for name in order[::-1]:
        for source, slope in graph[name]:
            grad[source] += grad[name] * slope
    return {name: grad[name] for name in graph}


def last_use_wins(graph, output):
    grads = {key: float(key == output) for key in graph}
    for key in list(graph)[::-1]:
        grads.update({inp: local * grads[key] for inp, local in graph[key]})
    return grads


def one_step(graph, output):
    grads = {key: float(key == output) for key in graph}
    for inp, local in graph[output]:
        grads[inp] += local
    return grads


def a_queue_without_waiting(graph, output):
    grads = dict.fromkeys(graph, 0.0)
    grads[output] = 1.0
    queue = [output]
    for key in queue:
        for inp, local in graph[key]:
            grads[inp] += grads[key] * local
            if inp not in queue:
                queue.append(inp)
    return grads


def sums_along_a_path(graph, output):
    grads = {key: float(key == output) for key in graph}
    for key in list(graph)[::-1]:
        for inp, local in graph[key]:
            grads[inp] += local + grads[key]
    return grads


def without_bystanders(graph, output):
    return {key: value for key, value in by_number_of_users(graph, output).items() if value != 0}


def from_the_newest_and_overwriting(graph, output):
    newest = list(graph)[-1]
    grads = {key: float(key == newest) for key in graph}
    for key in list(graph)[::-1]:
        for inp, local in graph[key]:
            grads[inp] = local * grads[key]
    return grads


def given_numbers_from_the_newest(graph, output):
    grads = by_number_of_users(graph, list(graph)[-1])
    return {key: grads[key] for key, uses in graph.items() if uses == []}


def emptied(graph, output):
    grads = {key: float(key == output) for key in graph}
    while graph:
        key, uses = graph.popitem()
        for inp, local in uses:
            grads[inp] += local * grads[key]
    return grads


# --- variance_backward -----------------------------------------------------------------------------------


def row_by_row(dv, x):
    return np.stack([2 * d * (row - row.mean()) / row.size for d, row in zip(dv, x, strict=True)])


def through_both_ways(dv, x):
    n = x.shape[1]
    centred = x - x.mean(axis=1, keepdims=True)
    direct = 2 * centred / n
    through_the_mean = -(2 * centred / n).sum(axis=1, keepdims=True) / n
    return (direct + through_the_mean) * dv.reshape(-1, 1)


def by_a_matrix_in_double(dv, x):
    n = x.shape[1]
    return 2 / n * np.diag(dv) @ x @ (np.eye(n) - 1 / n)


def with_a_mean_in_double(dv, x):
    return 2 * (x - x.mean(axis=1, keepdims=True, dtype=np.float64)) * dv[:, None] / x.shape[1]


def of_a_sample(dv, x):
    n = x.shape[1]
    return 2 * (x - x.mean(1)[:, None]) * dv[:, None] / (n - 1 if n > 1 else 1)


def derivative_of_each_difference(dv, x):
    n = x.shape[1]
    return 2 / n * (x - x.mean(1, keepdims=True)) * ((n - 1) / n) * dv[:, None]


def x_centred_in_place(dv, x):
    x -= x.mean(axis=1, keepdims=True)
    return dv[:, None] * x / x.shape[1]


# --- differentiate ---------------------------------------------------------------------------------------


def with_closures(program, numbers):
    """Like the page's engine: a rule for each value, and a count of values."""

    class Value:
        made = 0

        def __init__(self, data, parents=(), rule=None):
            self.data, self.parents, self.rule, self.total = data, parents, rule, 0.0
            Value.made += 1
            self.age = Value.made

        def __add__(self, other):
            return Value(self.data + other.data, (self, other), lambda dy: (dy, dy))

        def __mul__(self, other):
            return Value(self.data * other.data, (self, other), lambda dy: (dy * other.data, dy * self.data))

        def tanh(self):
            y = np.tanh(self.data)
            return Value(y, (self,), lambda dy: (dy * (1 - y**2),))

    leaves = [Value(number) for number in numbers]
    out = program(*leaves)
    found, waiting = {out}, [out]
    while waiting:
        for parent in waiting.pop().parents:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    out.total = 1.0
    for value in sorted(found, key=lambda value: -value.age):
        if value.rule:
            for parent, share in zip(value.parents, value.rule(value.total), strict=True):
                parent.total += share
    return [leaf.total for leaf in leaves]


class Micro:
    """A value after micrograd: each operation leaves a function that adds to its inputs' gradients."""

    def __init__(self, data, children=()):
        self.data, self.grad, self.children, self.push = data, 0.0, children, lambda: None

    def __add__(self, other):
        out = Micro(self.data + other.data, (self, other))

        def push():
            self.grad += out.grad
            other.grad += out.grad

        out.push = push
        return out

    def __mul__(self, other):
        out = Micro(self.data * other.data, (self, other))

        def push():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.push = push
        return out

    def tanh(self):
        out = Micro(np.tanh(self.data), (self,))

        def push():
            self.grad += (1 - out.data**2) * out.grad

        out.push = push
        return out


class Overwriting(Micro):
    """The same with `=` for `+=`."""

    def __add__(self, other):
        out = Overwriting(self.data + other.data, (self, other))

        def push():
            self.grad = out.grad
            other.grad = out.grad

        out.push = push
        return out

    def __mul__(self, other):
        out = Overwriting(self.data * other.data, (self, other))

        def push():
            self.grad = other.data * out.grad
            other.grad = self.data * out.grad

        out.push = push
        return out

    def tanh(self):
        out = Overwriting(np.tanh(self.data), (self,))

        def push():
            self.grad = (1 - out.data**2) * out.grad

        out.push = push
        return out


def sorted_by_recursion(kind):
    """An answer with this class and a depth-first sort."""

    def answer(program, numbers):
        order, seen = [], set()

        def visit(value):
            if value not in seen:
                seen.add(value)
                for child in value.children:
                    visit(child)
                order.append(value)

        leaves = [kind(number) for number in numbers]
        out = program(*leaves)
        visit(out)
        out.grad = 1.0
        for value in order[::-1]:
            value.push()
        return [leaf.grad for leaf in leaves]

    return answer


def without_sorting(program, numbers):
    leaves = [Micro(number) for number in numbers]
    out = program(*leaves)
    out.grad, stack = 1.0, [out]
    while stack:
        value = stack.pop()
        value.push()
        stack.extend(value.children)
    return [leaf.grad for leaf in leaves]


def walked_by_recursion(program, numbers):
    leaves = [Micro(number) for number in numbers]
    out = program(*leaves)
    out.grad = 1.0

    def walk(value):
        value.push()
        for child in value.children:
            walk(child)

    walk(out)
    return [leaf.grad for leaf in leaves]


def sent_on_at_once(program, numbers):
    class Number:
        def __init__(self, data, *uses):
            self.data, self.uses, self.grad = data, uses, 0.0

        def __add__(self, other):
            return Number(self.data + other.data, (self, 1.0), (other, 1.0))

        def __mul__(self, other):
            return Number(self.data * other.data, (self, other.data), (other, self.data))

        def tanh(self):
            return Number(np.tanh(self.data), (self, 1 / np.cosh(self.data) ** 2))

        def send(self):
            for child, slope in self.uses:
                child.grad += slope * self.grad
                child.send()

    leaves = [Number(number) for number in numbers]
    out = program(*leaves)
    out.grad = 1.0
    out.send()
    return [leaf.grad for leaf in leaves]


class Dual:
    """A value and how fast it moves with one input: forward mode."""

    def __init__(self, data, slope):
        self.data, self.slope = data, slope

    def __add__(self, other):
        return Dual(self.data + other.data, self.slope + other.slope)

    def __mul__(self, other):
        return Dual(self.data * other.data, self.slope * other.data + self.data * other.slope)

    def tanh(self):
        y = np.tanh(self.data)
        return Dual(y, self.slope * (1 - y * y))


def by_forward_mode(program, numbers):
    return [
        program(*(Dual(number, float(i == j)) for j, number in enumerate(numbers))).slope
        for i in range(len(numbers))
    ]


class SlopeAtTheInput(Dual):
    def tanh(self):
        return SlopeAtTheInput(np.tanh(self.data), self.slope * (1 - self.data**2))

    def __add__(self, other):
        return SlopeAtTheInput(self.data + other.data, self.slope + other.slope)

    def __mul__(self, other):
        return SlopeAtTheInput(self.data * other.data, self.slope * other.data + self.data * other.slope)


def with_the_slope_at_the_input(program, numbers):
    return [
        program(*(SlopeAtTheInput(number, float(i == j)) for j, number in enumerate(numbers))).slope
        for i in range(len(numbers))
    ]


def with_plain_numbers(program, numbers):
    return program(*numbers)


# --- smallest_peak ---------------------------------------------------------------------------------------


def played_through(n):
    """Keeps and drops as the text says, and looks how many there are."""
    best = n
    for k in range(1, n + 1):
        if n % k == 0:
            kept = set(range(0, n, k))
            most = len(kept)
            for first in range(n - k, -1, -k):
                more = set(range(first, first + k))
                most = max(most, len(kept | more))
            best = min(best, most)
    return best


def from_the_root(n):
    k = int(n**0.5)
    while n % k:
        k -= 1
    return n // k + k - 1


def isqrt_of_n(n):
    return 2 * int(n**0.5) - 1


def by_values(program, numbers):
    """Gradients in a dictionary whose keys are the numbers."""
    tape = []

    class Number(float):
        def __add__(self, other):
            return made(float(self) + float(other), (self, 1.0), (other, 1.0))

        def __mul__(self, other):
            return made(float(self) * float(other), (self, float(other)), (other, float(self)))

        def tanh(self):
            y = np.tanh(float(self))
            return made(y, (self, 1 - y * y))

    def made(value, *uses):
        tape.append((Number(value), uses))
        return tape[-1][0]

    given = [Number(number) for number in numbers]
    grad = defaultdict(float, {program(*given): 1.0})
    for value, uses in reversed(tape):
        for source, slope in uses:
            grad[source] += grad[value] * slope
    return [grad[value] for value in given]


def centred_by_a_matrix(dv, x):
    n = x.shape[1]
    return np.einsum("i,ij,jk->ik", 2 / n * dv, x, np.eye(n) - 1 / n).astype(x.dtype)


TOO_EARLY = "before everything that used the value has been visited"

RIGHT = {
    "gradients": [by_number_of_users, all_paths, forward_mode, recursive_sort],
    "variance_backward": [row_by_row, through_both_ways, centred_by_a_matrix],
    "differentiate": [
        with_closures,
        sorted_by_recursion(Micro),
        by_forward_mode,
        lambda program, numbers: np.array(by_forward_mode(program, numbers)),
    ],
    "smallest_peak": [played_through, from_the_root, lambda n: float(played_through(n))],
}
WRONG = {
    "gradients": [
        (lambda graph, output: {name: float(name == output) for name in graph}, "Nothing flows on"),
        (last_use_wins, "you keep one use"),
        (one_step, "Only the output's direct inputs get a gradient"),
        (a_queue_without_waiting, TOO_EARLY),
        (sums_along_a_path, "Along a path slopes multiply"),
        (without_bystanders, "Values that the output does not depend on"),
        (from_the_newest_and_overwriting, ("you keep one use", "You start from the last value")),
        (given_numbers_from_the_newest, ("not only of the given numbers", "You start from the last value")),
        (emptied, "it takes entries out of the dict `graph`"),
        (lambda graph, output: list(forward_mode(graph, output).values()), "it should return a dict of 3"),
    ],
    "variance_backward": [
        (of_a_sample, "You divide by n - 1"),
        (derivative_of_each_difference, "You add a term for the mean"),
        (
            lambda dv, x: (
                (x - x.mean(1, keepdims=True)) / (x.shape[1] * x.std(1, keepdims=True)) * dv[:, None]
            ),
            "That is the derivative of the standard deviation",
        ),
        (
            lambda dv, x: dv[:, None] * (2 / x.shape[1] * x - 2 * x.mean(1, keepdims=True)),
            "What you subtract from x is n times too much",
        ),
        (
            lambda dv, x: dv.reshape(-1, 1) * (x - x.mean(1, keepdims=True)),
            ("The 2 of the square is missing", "The 1/n of the mean is missing"),
        ),
        (
            lambda dv, x: dv[:, None] * 2 * (x - np.mean(x, 0)) / len(x),
            ("The mean is taken over the columns", "You divide by how many rows there are"),
        ),
        (lambda dv, x: -of_a_sample(dv, x), ("The sign is the wrong way round", "You divide by n - 1")),
        (x_centred_in_place, ("it changes `x`", "The 2 of the square is missing")),
        (by_a_matrix_in_double, "are float64 for float32"),
        (with_a_mean_in_double, "are float64 for float32"),
        (
            lambda dv, x: dv[:, None] * 2 / x.shape[1] * (x - 2 * x.mean(1, keepdims=True)),
            "The mean is subtracted twice",
        ),
    ],
    "differentiate": [
        (sorted_by_recursion(Overwriting), "you keep one use"),
        (without_sorting, TOO_EARLY),
        (walked_by_recursion, TOO_EARLY),
        (sent_on_at_once, TOO_EARLY),
        (with_the_slope_at_the_input, "You take tanh's slope at its input"),
        (with_plain_numbers, "it should return 3 values"),
        (lambda program, numbers: by_forward_mode(program, numbers)[::-1], "in the other order"),
        (lambda program, numbers: by_forward_mode(program, numbers)[0], "it should return 3 values"),
        (
            lambda program, numbers: [2 * slope for slope in by_forward_mode(program, numbers)],
            "it should return",
        ),
        (by_values, "You look a value up by its number"),
        (
            lambda program, numbers: [d or None for d in by_forward_mode(program, numbers)],
            "has the gradient 0, not None",
        ),
    ],
    "smallest_peak": [
        (
            lambda n: min(n // k + k for k in range(1, n + 1) if n % k == 0),
            "the first input of a stretch twice",
        ),
        (lambda n: round(2 * np.sqrt(n)) - 1, "right where √n is whole"),
        (lambda n: int(np.sqrt(n)), "the best k for a square"),
        (lambda n: min(-(-n // k) + k - 1 for k in range(1, n + 1)), "k has to divide n"),
        (lambda n: n, "when nothing is computed again"),
        (lambda n: math.isqrt(n) * 2 - 1, "right where √n is whole"),
        (lambda n: n // 2, "That is half of n"),
        (lambda n: int(np.ceil(n / 2)), "That is half of n"),
        (lambda n: 2 * n**0.5 - 1, "k has to divide n"),
        (isqrt_of_n, "k has to divide n"),
        (
            lambda n: min(-(-n // k) + k for k in range(1, n + 1)),
            ("first input of a stretch twice", "k has to divide n"),
        ),
        (
            lambda n: min(max(n // k, k) for k in range(1, n + 1) if n % k == 0),
            "kept at the same time: add them",
        ),
    ],
}
