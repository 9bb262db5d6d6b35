"""Answers to the exercises of chapter 2 as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

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


# --- matmul_backward -------------------------------------------------------------------------------------


def by_einsum(dy, a, b):
    return np.einsum("ik,jk->ij", dy, b), np.einsum("ij,ik->jk", a, dy)


def by_loops(dy, a, b):
    da, db = np.zeros_like(a), np.zeros_like(b)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(b.shape[1]):
                da[i, j] += dy[i, k] * b[j, k]
                db[j, k] += dy[i, k] * a[i, j]
    return da, db


def transposed_twice(dy, a, b):
    return [(b @ dy.T).T, (dy.T @ a).T]


def in_double(dy, a, b):
    return np.einsum("np,mp->nm", dy, b, dtype=np.float64), np.einsum("nm,np->mp", a, dy, dtype=np.float64)


def of_the_sum(dy, a, b):
    return np.tile(b.sum(axis=1), (a.shape[0], 1)), np.tile(a.sum(axis=0)[:, None], (1, b.shape[1]))


def last_row_and_column(dy, a, b):
    for i in range(len(dy)):
        db = a[i][:, None] * dy[i]
    for k in range(dy.shape[1]):
        da = dy[:, k][:, None] * b[:, k]
    return da, db


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


# --- numerical_gradient ----------------------------------------------------------------------------------


def with_a_unit_array(f, x, h=1e-6):
    slopes = []
    for i in range(x.size):
        unit = np.zeros(x.size)
        unit[i] = h
        unit = unit.reshape(x.shape)
        slopes.append((f(x + unit) - f(x - unit)) / (2 * h))
    return np.array(slopes).reshape(x.shape)


def moved_and_put_back(f, x, h=1e-6):
    gradient = np.empty(x.shape)
    for place, value in np.ndenumerate(x.copy()):
        x[place] = value + h
        up = f(x)
        x[place] = value - h
        down = f(x)
        x[place] = value
        gradient[place] = (up - down) / h / 2
    return gradient


def put_back_by_arithmetic(f, x, h=1e-6):
    gradient = np.empty(x.shape)
    for place in np.ndindex(*x.shape):
        x[place] += h
        up = f(x)
        x[place] -= 2 * h
        gradient[place] = (up - f(x)) / (2 * h)
        x[place] += h
    return gradient


def upwards_only(f, x, h=1e-6):
    here = f(x)
    gradient = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        moved = np.array(x)
        moved[place] += h
        gradient[place] = (f(moved) - here) / h
    return gradient


def not_put_back(f, x, h=1e-6):
    gradient = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        x[place] = x[place] + h
        up = f(x)
        x[place] = x[place] - 2 * h
        gradient[place] = (up - f(x)) / h
    return gradient


def one_or_two_axes(f, x, h=1e-6):
    places = [(i,) for i in range(len(x))] if x.ndim == 1 else np.ndindex(*x.shape[:2])
    gradient = np.zeros_like(x)
    for place in places:
        unit = np.zeros_like(x)
        unit[place] = h
        gradient[place] = (f(x + unit) - f(x - unit)) / (2 * h)
    return gradient


def moved_in_a_flat_copy(f, x, h=1e-6):
    flat, slopes = x.reshape(-1), []
    for i, value in enumerate(flat.tolist()):
        flat[i] = value + h
        up = f(x)
        flat[i] = value - h
        slopes.append((up - f(x)) / (2 * h))
        flat[i] = value
    return np.reshape(slopes, x.shape)


TOO_EARLY = "before everything that used the value has been visited"

RIGHT = {
    "gradients": [by_number_of_users, all_paths, forward_mode, recursive_sort],
    "matmul_backward": [by_einsum, by_loops, transposed_twice, in_double],
    "variance_backward": [row_by_row, through_both_ways, by_a_matrix_in_double, with_a_mean_in_double],
    "numerical_gradient": [with_a_unit_array, moved_and_put_back],
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
    "matmul_backward": [
        (lambda dy, a, b: (b @ dy.T, dy.T @ a), "Both come out transposed"),
        (lambda dy, a, b: (dy.T @ a, b @ dy.T), ("in the other order", "Both come out transposed")),
        (lambda dy, a, b: (np.matmul(dy, b), np.matmul(a.T, dy)), "b has to be transposed"),
        (of_the_sum, "You left dy out"),
        (
            lambda dy, a, b: (dy @ b.reshape(-1, len(b)), a.reshape(-1, len(a)) @ dy),
            "and keeps the reading order",
        ),
        (last_row_and_column, "A gradient holds the last term"),
        (lambda dy, a, b: (dy.dot(b), a.dot(dy)), ("b has to be transposed", "a has to be transposed")),
        (
            lambda dy, a, b: (np.einsum("nm,np->pm", a, dy), np.einsum("np,mp->nm", dy, b)),
            ("in the other order", "db comes out transposed"),
        ),
        (
            lambda dy, a, b: (dy @ b, np.mean(a[:, :, None] * dy[:, None, :], axis=0)),
            ("b has to be transposed", "You divide by the number of rows"),
        ),
        (lambda dy, a, b: dy @ b.T, "it should return 2 values"),
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
        (lambda dv, x: -of_a_sample(dv, x), ("The sign is turned round", "You divide by n - 1")),
        (x_centred_in_place, ("it changes `x`", "The 2 of the square is missing")),
    ],
    "numerical_gradient": [
        (
            lambda f, x, h=1e-6: np.full(x.shape, (f(x) - f(x)) / (2 * h)),
            "it never sees the array that was moved",
        ),
        (put_back_by_arithmetic, "it leaves a rounding error in `x`"),
        (upwards_only, "You move up only"),
        (
            lambda f, x, h=1e-6: (f(x + h) - f(x - h)) / (2 * h) * np.ones_like(x),
            "You move all entries at once",
        ),
        (one_or_two_axes, "Your loops fit arrays with a certain number of axes only"),
        (moved_in_a_flat_copy, "are copies where x is a view"),
        (not_put_back, ("do not put them back", "Up and down are 2h apart")),
        (
            lambda f, x, h=1e-6: 2 * with_a_unit_array(f, x, h).reshape(-1),
            ("yours is flat", "Up and down are 2h apart"),
        ),
        (
            lambda f, x, h=1e-6: -with_a_unit_array(f, x, 1e-6),
            ("You have a step of your own", "The sign is turned round"),
        ),
    ],
}
