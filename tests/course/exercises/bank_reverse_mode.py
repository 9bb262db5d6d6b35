"""Answers to its exercises as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

import numpy as np

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


def forward_mode(graph, output):
    """From each value on its own, forward to the output."""
    grad = {}
    for start in graph:
        moved = {}
        for name, uses in graph.items():
            moved[name] = sum(moved[s] * slope for s, slope in uses) + (1.0 if name == start else 0.0)
        grad[start] = moved[output]
    return grad


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


def with_a_mean_in_double(dv, x):
    return 2 * (x - x.mean(axis=1, keepdims=True, dtype=np.float64)) * dv[:, None] / x.shape[1]


def of_a_sample(dv, x):
    n = x.shape[1]
    return 2 * (x - x.mean(1)[:, None]) * dv[:, None] / (n - 1 if n > 1 else 1)


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
    """The same with `=` for `+=`, and tanh's slope at its input."""

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
            self.grad = (1 - self.data**2) * out.grad

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


def centred_by_a_matrix(dv, x):
    n = x.shape[1]
    return np.einsum("i,ij,jk->ik", 2 / n * dv, x, np.eye(n) - 1 / n).astype(x.dtype)


RIGHT = {
    "gradients": [by_number_of_users, forward_mode],
    "variance_backward": [row_by_row, centred_by_a_matrix],
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
        (from_the_newest_and_overwriting, ("[one-use]", "[from-the-last]")),
        (given_numbers_from_the_newest, ("[inputs-alone]", "[from-the-last]")),
        (emptied, "it takes entries out of the dict `graph`"),
        (lambda graph, output: list(forward_mode(graph, output).values()), "it should return a dict of 3"),
    ],
    "variance_backward": [
        (
            lambda dv, x: dv.reshape(-1, 1) * (x - x.mean(1, keepdims=True)),
            ("[no-two]", "[no-n]"),
        ),
        (
            lambda dv, x: dv[:, None] * 2 * (x - np.mean(x, 0)) / len(x),
            ("[over-columns]", "[by-rows]"),
        ),
        (lambda dv, x: -of_a_sample(dv, x), ("[sign]", "[sample-variance]")),
        (x_centred_in_place, ("it changes `x`", "[no-two]")),
        (with_a_mean_in_double, "are float64 for float32"),
    ],
    "differentiate": [
        (sorted_by_recursion(Overwriting), ("[one-use]", "[slope-at-the-input]")),
        (lambda program, numbers: by_forward_mode(program, numbers)[0], "it should return 3 values"),
        (
            lambda program, numbers: [2 * slope for slope in by_forward_mode(program, numbers)],
            "it should return",
        ),
    ],
    "smallest_peak": [
        (
            lambda n: min(-(-n // k) + k for k in range(1, n + 1)),
            ("[first-input-twice]", "[any-k]"),
        ),
    ],
}
