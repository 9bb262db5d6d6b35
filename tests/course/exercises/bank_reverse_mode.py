"""Answers to its exercises as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

import numpy as np

from bert_course.common.engine import course_bert

unbroadcast = course_bert().unbroadcast

# --- backward --------------------------------------------------------------------------------------------


def behind(output):
    """All tensors behind an output, newest first."""
    found, waiting = {output}, [output]
    while waiting:
        new = set(waiting.pop().parents) - found
        found |= new
        waiting += new
    return sorted(found, key=lambda tensor: -tensor.number)


def through_all_of_the_graph(output):
    arrived = {output: 1.0 + 0 * output.data}
    for tensor in behind(output):
        dy = arrived.get(tensor)
        if dy is None:
            continue
        if not tensor.parents:
            tensor.grad = dy + (0 if tensor.grad is None else tensor.grad)
            continue
        for parent, gradient in zip(tensor.parents, tensor.rule(dy), strict=True):
            if parent.requires_grad:
                arrived[parent] = arrived.get(parent, 0) + unbroadcast(gradient, parent.shape)


def overwriting_and_not_summed_back(output):
    arrived = {output: np.ones_like(output.data)}
    for tensor in behind(output):
        dy = arrived.get(tensor)
        if dy is not None and tensor.rule is None:
            tensor.grad = dy
        elif dy is not None:
            arrived |= {p: g for p, g in zip(tensor.parents, tensor.rule(dy), strict=True) if p.requires_grad}


def recursive(output, dy=None):
    """Each way to a leaf by itself."""
    dy = np.ones_like(output.data) if dy is None else dy
    if output.rule is None:
        output.grad = dy if output.grad is None else output.grad + dy
        return
    for parent, gradient in zip(output.parents, output.rule(dy), strict=True):
        if parent.requires_grad:
            recursive(parent, unbroadcast(gradient, parent.shape))


# --- variance_backward -----------------------------------------------------------------------------------


def row_by_row(dv, x):
    return np.stack([2 * d * (row - row.mean()) / row.size for d, row in zip(dv, x, strict=True)])


def with_a_mean_in_double(dv, x):
    return 2 * (x - x.mean(axis=1, keepdims=True, dtype=np.float64)) * dv[:, None] / x.shape[1]


def x_centred_in_place(dv, x):
    x -= x.mean(axis=1, keepdims=True)
    return dv[:, None] * x / x.shape[1]


# --- differentiate ---------------------------------------------------------------------------------------


class Micro:
    """A value after micrograd: each operation leaves a function that adds to its inputs' gradients."""

    def __init__(self, data, children=()):
        self.data, self.grad, self.children, self.push = data, 0.0, children, lambda: None

    def take(self, share):
        self.grad += share

    def __add__(self, other):
        out = type(self)(self.data + other.data, (self, other))
        out.push = lambda: (self.take(out.grad), other.take(out.grad))
        return out

    def __mul__(self, other):
        out = type(self)(self.data * other.data, (self, other))
        out.push = lambda: (self.take(other.data * out.grad), other.take(self.data * out.grad))
        return out

    def tanh(self):
        out = type(self)(np.tanh(self.data), (self,))
        out.push = lambda: self.take((1 - out.data**2) * out.grad)
        return out


class Overwriting(Micro):
    """The same with `=` for `+=`, and tanh's slope at its input."""

    def take(self, share):
        self.grad = share

    def tanh(self):
        out = Overwriting(np.tanh(self.data), (self,))
        out.push = lambda: self.take((1 - self.data**2) * out.grad)
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


def from_the_root(n):
    k = int(n**0.5)
    while n % k:
        k -= 1
    return n // k + k - 1


def centred_by_a_matrix(dv, x):
    n = x.shape[1]
    return np.einsum("i,ij,jk->ik", 2 / n * dv, x, np.eye(n) - 1 / n).astype(x.dtype)


RIGHT = {
    "backward": [through_all_of_the_graph, recursive],
    "variance_backward": [row_by_row, centred_by_a_matrix],
    "differentiate": [sorted_by_recursion(Micro), by_forward_mode],
    "smallest_peak": [from_the_root],
}
WRONG = {
    "backward": [
        (overwriting_and_not_summed_back, "the gradient of x"),
        (lambda output: None, "the gradient of x"),
    ],
    "variance_backward": [
        (lambda dv, x: dv.reshape(-1, 1) * (x - x.mean(1, keepdims=True)), ("[no-two]", "[no-n]")),
        (x_centred_in_place, ("it changes `x`", "[no-two]")),
        (with_a_mean_in_double, "are float64 for float32"),
    ],
    "differentiate": [(sorted_by_recursion(Overwriting), ("[one-use]", "[slope-at-the-input]"))],
    "smallest_peak": [
        (lambda n: min(-(-n // k) + k for k in range(1, n + 1)), ("[first-input-twice]", "[any-k]"))
    ],
}
