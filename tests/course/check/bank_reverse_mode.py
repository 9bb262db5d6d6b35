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
    grads = dict.fromkeys(graph, 0.0)
    grads[output] = 1.0
    for key in list(graph)[::-1]:
        for inp, local in graph[key]:
            grads[inp] = local * grads[key]
    return grads


def from_the_front(graph, output):
    grads = dict.fromkeys(graph, 0.0)
    grads[output] = 1.0
    for key, uses in graph.items():
        for inp, local in uses:
            grads[inp] += grads[key] * local
    return grads


def recursion_on_what_has_come(graph, output):
    grads = dict.fromkeys(graph, 0.0)

    def back(key):
        for inp, local in reversed(graph[key]):
            grads[inp] += grads[key] * local
        for inp, _ in reversed(graph[key]):
            back(inp)

    grads[output] = 1.0
    back(output)
    return grads


def a_queue_without_waiting(graph, output):
    grads = dict.fromkeys(graph, 0.0)
    grads[output] = 1.0
    queue, done = [output], []
    for key in queue:
        done.append(key)
        for inp, local in graph[key]:
            grads[inp] += grads[key] * local
            if inp not in queue:
                queue.append(inp)
    return grads


def sums_along_a_path(graph, output):
    grads = dict.fromkeys(graph, 0.0)
    grads[output] = 1.0
    for key in list(graph)[::-1]:
        for inp, local in graph[key]:
            grads[inp] += local + grads[key]
    return grads


def from_the_newest(graph, output):
    grads = dict.fromkeys(graph, 0.0)
    newest = list(graph)[-1]
    grads[newest] = 1.0
    for key in list(graph)[::-1]:
        for inp, local in graph[key]:
            grads[inp] += local * grads[key]
    return grads


def without_bystanders(graph, output):
    return {key: value for key, value in by_number_of_users(graph, output).items() if value != 0}


def output_forgotten(graph, output):
    grads = by_number_of_users(graph, output)
    grads[output] = 0.0
    return grads


def as_a_list(graph, output):
    return list(by_number_of_users(graph, output).values())


def never_started(graph, output):
    grads = dict.fromkeys(graph, 0.0)
    for key in reversed(graph):
        for inp, local in graph[key]:
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


def swapped(dy, a, b):
    return np.dot(a.T, dy), np.dot(dy, b.T)


def b_not_transposed(dy, a, b):
    return np.matmul(dy, b), np.matmul(a.T, dy)


def a_not_transposed(dy, a, b):
    return np.matmul(dy, b.T), np.matmul(a, dy)


def nothing_transposed(dy, a, b):
    return dy.dot(b), a.dot(dy)


def db_turned(dy, a, b):
    return dy @ np.transpose(b), np.transpose(dy) @ a


def da_turned(dy, a, b):
    return b @ np.transpose(dy), np.transpose(a) @ dy


def of_the_sum(dy, a, b):
    return np.tile(b.sum(axis=1), (a.shape[0], 1)), np.tile(a.sum(axis=0)[:, None], (1, b.shape[1]))


def entry_by_entry(dy, a, b):
    return np.multiply(dy, b), np.multiply(a, dy)


def only_one(dy, a, b):
    return dy @ b.T


# --- variance_backward -----------------------------------------------------------------------------------


def row_by_row(dv, x):
    return np.stack([2 * d * (row - row.mean()) / row.size for d, row in zip(dv, x, strict=True)]).astype(
        x.dtype
    )


def through_both_ways(dv, x):
    n = x.shape[1]
    centred = x - x.mean(axis=1, keepdims=True)
    direct = 2 * centred / n
    through_the_mean = -(2 * centred / n).sum(axis=1, keepdims=True) / n
    return (direct + through_the_mean) * dv.reshape(-1, 1)


def by_a_matrix(dv, x):
    n = x.shape[1]
    centring = np.eye(n, dtype=x.dtype) - np.full((n, n), 1 / n, dtype=x.dtype)
    return x @ centring * np.expand_dims(dv, 1) * x.dtype.type(2 / n)


def of_a_sample(dv, x):
    n = x.shape[1]
    return 2 * (x - x.mean(1)[:, None]) * dv[:, None] / (n - 1 if n > 1 else 1)


def never_divided_by_n(dv, x):
    return dv.reshape(-1, 1) * 2 * (x - x.mean(1, keepdims=True))


def two_forgotten(dv, x):
    return dv.reshape(-1, 1) * (x - x.mean(1, keepdims=True)) / x.shape[1]


def two_and_n_forgotten(dv, x):
    return dv.reshape(-1, 1) * (x - x.mean(1, keepdims=True))


def derivative_of_each_difference(dv, x):
    n = x.shape[1]
    return 2 / n * (x - x.mean(1, keepdims=True)) * ((n - 1) / n) * dv[:, None]


def not_centred(dv, x):
    return dv[:, None] * 2 * x / x.shape[1]


def mean_of_everything(dv, x):
    return dv[:, None] * 2 * (x - np.mean(x)) / x.shape[-1]


def mean_of_the_columns(dv, x):
    return dv[:, None] * 2 * (x - np.mean(x, 0)) / x.shape[-1]


def without_dv(dv, x):
    return (x - x.mean(1, keepdims=True)) * 2 / x.shape[1]


def dv_along_the_columns(dv, x):
    return (x - x.mean(1, keepdims=True)) * 2 / x.shape[1] * dv


def upside_down(dv, x):
    return dv[:, None] * 2 * (x.mean(1, keepdims=True) - x) / x.shape[1]


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
    x = np.array(x)
    gradient = np.empty(x.shape)
    for place, value in np.ndenumerate(x.copy()):
        x[place] = value + h
        up = f(x)
        x[place] = value - h
        down = f(x)
        x[place] = value
        gradient[place] = (up - down) / h / 2
    return gradient


def upwards_only(f, x, h=1e-6):
    here = f(x)
    gradient = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        moved = np.array(x)
        moved[place] += h
        gradient[place] = (f(moved) - here) / h
    return gradient


def divided_by_h(f, x, h=1e-6):
    gradient = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        unit = np.zeros_like(x)
        unit[place] = h
        gradient[place] = (f(x + unit) - f(x - unit)) / h
    return gradient


def everything_moved(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h) * np.ones_like(x)


def one_number(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / h / 2


def not_put_back(f, x, h=1e-6):
    gradient = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        x[place] = x[place] + h
        up = f(x)
        x[place] = x[place] - 2 * h
        down = f(x)
        gradient[place] = (up - down) / (2 * h)
    return gradient


def a_step_of_its_own(f, x, h=1e-6):
    return with_a_unit_array(f, x, 1e-6)


def as_a_flat_array(f, x, h=1e-6):
    return with_a_unit_array(f, x, h).reshape(-1)


def down_minus_up(f, x, h=1e-6):
    return with_a_unit_array(f, x, -h) * -1


def differences_alone(f, x, h=1e-6):
    gradient = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        unit = np.zeros_like(x)
        unit[place] = h
        gradient[place] = f(x + unit) - f(x - unit)
    return gradient


TOO_EARLY = "before everything that used the value has been visited"
ALL_AT_ONCE = "You move all entries at once"

RIGHT = {
    "gradients": [by_number_of_users, all_paths, forward_mode, recursive_sort],
    "matmul_backward": [by_einsum, by_loops, transposed_twice],
    "variance_backward": [row_by_row, through_both_ways, by_a_matrix],
    "numerical_gradient": [with_a_unit_array, moved_and_put_back],
}
WRONG = {
    "gradients": [
        (last_use_wins, "You overwrite where you should add"),
        (from_the_front, "You visit the oldest value first"),
        (recursion_on_what_has_come, TOO_EARLY),
        (a_queue_without_waiting, TOO_EARLY),
        (sums_along_a_path, "Along a path slopes multiply"),
        (from_the_newest, "You start from the last value of the graph"),
        (without_bystanders, "Values that the output does not depend on"),
        (output_forgotten, "The output's own gradient is 1"),
        (never_started, "The output's own gradient is 1, and nothing flows"),
        (as_a_list, "it should return a dict of 3"),
    ],
    "matmul_backward": [
        (swapped, "The two gradients are in the other order"),
        (b_not_transposed, "b has to be transposed"),
        (a_not_transposed, "a has to be transposed"),
        (nothing_transposed, "Both factors are missing their transpose"),
        (db_turned, "db comes out transposed"),
        (da_turned, "da comes out transposed"),
        (of_the_sum, "You left dy out"),
        (entry_by_entry, "entry by entry"),
        (only_one, "it should return"),
    ],
    "variance_backward": [
        (of_a_sample, "You divide by n - 1"),
        (never_divided_by_n, "The 1/n of the mean is missing"),
        (two_forgotten, "The 2 of the square is missing"),
        (two_and_n_forgotten, "The 2 of the square and the 1/n of the mean are missing"),
        (derivative_of_each_difference, "You add a term for the mean"),
        (not_centred, "The mean has not been subtracted"),
        (mean_of_everything, "The mean is that of the whole array"),
        (mean_of_the_columns, "The mean is taken over the columns"),
        (without_dv, "You left dv out"),
        (dv_along_the_columns, "lines up with the columns"),
        (upside_down, "The sign is turned round"),
    ],
    "numerical_gradient": [
        (upwards_only, "You move up only"),
        (divided_by_h, "divide by 2h"),
        (everything_moved, ALL_AT_ONCE),
        (one_number, ALL_AT_ONCE),
        (not_put_back, "You move entries of x itself"),
        (a_step_of_its_own, "You have a step of your own"),
        (as_a_flat_array, "The gradient has the shape of x"),
        (down_minus_up, "The sign is turned round"),
        (differences_alone, "still has to be divided by 2h"),
    ],
}
