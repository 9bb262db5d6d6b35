"""Chapter 2: reverse mode."""

from __future__ import annotations

import itertools  # noqa: F401
from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.course.check.exercise import exercise

# --- gradients -------------------------------------------------------------------------------------------


def _graph_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    a, b, c, d = (round(float(value), 3) for value in rng.uniform(1.5, 4, 4))
    yield "a chain", {"x": [], "y": [("x", a)], "z": [("y", b)]}, "z"
    yield "a value that is used twice in one step", {"x": [], "y": [("x", a), ("x", b)]}, "y"
    diamond = {"x": [], "left": [("x", a)], "right": [("x", b)], "y": [("left", c), ("right", d)]}
    yield "two paths that meet", diamond, "y"
    skip = {"x": [], "y": [("x", a)], "z": [("y", b), ("x", c)], "loss": [("z", d), ("y", 1.0)]}
    yield "a residual connection", skip, "loss"
    late = {"x": [], "a": [("x", a)], "b": [("a", b)], "c": [("b", c)], "y": [("a", 1.0), ("c", d)]}
    yield "a short and a long path to the same value", late, "y"
    early = {"x": [], "a": [("x", a)], "b": [("a", b)], "c": [("b", c)], "y": [("c", 1.0), ("a", d)]}
    yield "a long and a short path to the same value", early, "y"
    more = {"x": [], "left": [("x", a)], "right": [("x", b)], "y": [("left", c), ("right", d)]}
    yield (
        "an output with more behind it, and a value beside it",
        {**more, "w": [], "far": [("y", 2.0), ("left", d)]},
        "y",
    )
    three = {"x": [], "w": [], "p": [("w", a), ("x", -b)], "b": [], "y": [("p", -c), ("b", 1.0), ("x", d)]}
    yield "three inputs, a number that is given late, and slopes below 0", three, "y"
    off = {"x": [], "w": [], "p": [("x", a), ("w", b)], "q": [("w", c)], "y": [("p", 0.0), ("w", d)]}
    yield "a slope of 0", off, "y"


def _as_reached(graph, output, place, again):
    """The values in the order in which a walk from the output reaches them; again: each time, not only the first."""
    waiting, seen = [output], {output}
    while waiting:
        name = waiting.pop(place)
        yield name
        for source, _ in graph[name]:
            if again or source not in seen:
                seen.add(source)
                waiting.append(source)


@exercise(
    chapter=2,
    difficulty=2,
    minutes=15,
    cases=_graph_cases,
    hints="""
Start with 0 for every value and 1 for the output. Which value may pass its gradient on first?

A dictionary keeps the order in which it was made, and reversed(graph) walks it from the newest back.

For each value, newest first, and each of its (source, slope): grad[source] += grad[value] * slope.
""",
    mistakes="""
Of a value that is used more than once you keep one use: the gradients of all uses are added.
    grad[source] += -> grad[source] =
    grad[source] += grad[name] * slope -> grad[source] = grad[source] or grad[name] * slope || grad[source] = max(grad[source], grad[name] * slope)
    for name in reversed(graph) -> def visit(name) ; += grad[name] * slope -> = grad[name] * slope; visit(source) ; return grad -> visit(output); return grad
A value that is used twice in one step is listed twice there, and you keep one of the two: their slopes are added.
    in graph[name] -> in dict(graph[name]).items() || in dict(graph[name][::-1]).items()
You take the mean over the uses of a value. Every use moves the output by itself: add them up.
    grad[source] += grad[name] * slope -> grad[source] += grad[name] * slope / sum(s == source for n in graph for s, _ in graph[n])
Only the output's direct inputs get a gradient: you stop after one step, or visit the oldest value first. The gradient flows from the output back to the beginning, so the newest value comes first.
    reversed(graph) -> graph || [output]
You pass a value's gradient on before everything that used the value has been visited. Newest first is an order in which that cannot happen.
    reversed(graph) -> _as_reached(graph, output, -1, True) || _as_reached(graph, output, -1, False) || _as_reached(graph, output, 0, True)
    reversed(graph) -> _as_reached(graph, output, 0, False)
    for name in reversed(graph) -> def visit(name) ; * slope -> * slope; visit(source) ; return grad -> visit(output); return grad
    for name in reversed(graph) -> def visit(name, seen=set()) ; in graph -> in seen.add(name) or graph ; * slope -> * slope; source in seen or visit(source) ; return grad -> visit(output); return grad
You sort the values by their names. The order in which they were computed is that of the dictionary.
    reversed(graph) -> sorted(graph, reverse=True)
You stop at a value that passes nothing on. Behind it in the dictionary there can be others that do.
    reversed(graph) -> itertools.takewhile(graph.get, reversed(graph)) || itertools.takewhile(grad.get, reversed(graph))
Along a path slopes multiply; only different paths are added.
    grad[name] * slope -> (grad[name] + slope)
You multiply what comes along different paths. Slopes multiply along one path; different paths are added.
    dict.fromkeys(graph, 0.0) -> dict.fromkeys(graph, 1.0) ; += -> *=
You pass on the local slope alone. It has to be multiplied with the gradient of the value that was computed with it.
    grad[name] * slope -> slope
You pass on the gradient without the local slope: multiply with it.
    grad[name] * slope -> grad[name]
You divide by the slopes. Along a path they multiply.
    grad[name] * slope -> (grad[name] / slope if slope else 0.0)
Of the inputs of a value not all are visited: there can be any number.
    in graph[name] -> in graph[name][:1] || in graph[name][:2] || in graph[name][-1:]
The gradient flows the wrong way, from the inputs of a value to the value. It goes from a value to what it was computed from.
    grad[source] += grad[name] * slope -> grad[name] += grad[source] * slope
    grad[source] += grad[name] * slope -> grad[name] += grad[source] * slope ; reversed(graph) -> graph
    grad[source] += grad[name] * slope -> grad[name] += grad[source] * slope ; reversed(graph) -> graph ; grad[output] -> grad[next(iter(graph))]
You start from the last value of the graph; the output asked for may be another.
    grad[output] -> grad[list(graph)[-1]]
Only the output starts with 1. The other values start with 0, and their gradient is what comes from those that used them.
    dict.fromkeys(graph, 0.0) -> dict.fromkeys(graph, 1.0)
Values that the output does not depend on belong in the answer too, with 0.
    return grad -> return {name: value for name, value in grad.items() if value}
    graph, 0.0) -> _as_reached(graph, output, 0, False), 0.0) ; in graph[name] -> in (graph[name] if name in grad else [])
The gradient of every value is asked for, not only of the given numbers.
    return grad -> return {name: grad[name] for name in graph if not graph[name]}
The output's own gradient is 1, and belongs in the answer.
    return grad -> return {**grad, output: 0.0} || return {name: grad[name] for name in graph if name != output}
Nothing flows on from the output: each input of a value gets that value's gradient, times the local slope.
    grad[source] += grad[name] * slope -> pass
The output's own gradient is 1, and nothing flows until it is there.
    grad[output] = 1.0 ->
""",
)
def gradients(graph, output):
    grad = dict.fromkeys(graph, 0.0)
    grad[output] = 1.0
    for name in reversed(graph):  # newest first: a value is complete before it is passed on
        for source, slope in graph[name]:
            grad[source] += grad[name] * slope
    return grad


# --- matmul_backward -------------------------------------------------------------------------------------


def _matmul_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for n, m, p in ((3, 5, 2), (4, 4, 4), (1, 6, 1), (5, 3, 3), (4, 4, 2)):
        arrays = rng.standard_normal((n, p)), rng.standard_normal((n, m)), rng.standard_normal((m, p))
        yield f"a ({n}, {m}), b ({m}, {p})", *arrays
    single = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3), (2, 7), (7, 3)))
    yield "float32, a (2, 7), b (7, 3)", *single


@exercise(
    chapter=2,
    difficulty=1,
    minutes=8,
    cases=_matmul_cases,
    hints="""
The shapes decide: da is made of dy (n, p) and b (m, p), and has shape (n, m).

dA = dY Bᵀ. For the other one, sum over the rows n.
""",
    mistakes="""
The two gradients are in the other order: da first, then db.
    da, db -> db, da
You multiply dy with b as it is. dy (n, p) and b (m, p) meet along p: b has to be transposed.
    b.T -> b
You multiply a with dy as it is. a (n, m) and dy (n, p) meet along n: a has to be transposed.
    a.T -> a
A square matrix has to be transposed as well: that the shapes fit without it says nothing.
    b.T -> b if b.shape[0] == b.shape[1] else b.T
    a.T -> a if a.shape[0] == a.shape[1] else a.T
    b.T -> b if b.shape[0] == b.shape[1] else b.T ; a.T -> a if a.shape[0] == a.shape[1] else a.T
The reshape gives a matrix the shape of its transpose, and keeps the reading order. A transpose changes the reading order.
    b.T -> b.reshape(b.shape[::-1])
    a.T -> a.reshape(a.shape[::-1])
    b.T -> b.reshape(b.shape[::-1]) ; a.T -> a.reshape(a.shape[::-1])
Two gradients are asked for, da and db: return both.
    return da, db -> return da || return db
db comes out transposed: (m, p) is asked for.
    return -> db = db.T; return
Both come out transposed: da (n, m) and db (m, p) are asked for.
    return -> da, db = da.T, db.T; return
da comes out transposed: (n, m) is asked for.
    db = -> da = da.T; db =
The factors of a product have changed places. Entry by entry, write down which axis is summed over: it is the one on which the two factors touch.
    dy @ bT -> bT @ dy
    aT @ dy -> dy @ aT
    dy @ bT -> bT @ dy ; aT @ dy -> dy @ aT
You left dy out: what you have is a gradient of the sum of all entries of Y.
    dy @ bT -> np.ones_like(dy) @ bT
    aT @ dy -> aT @ np.ones_like(dy)
    da = -> dy = np.ones_like(dy); da =
Those are the two factors: each has to be multiplied with dy.
    return da, db -> return b.T, a.T || return b, a
That is the product of dy with the other factor entry by entry. Y is a matrix product, and so are its gradients.
    dy @ bT -> dy * b || dy * bT
    aT @ dy -> a * dy || aT * dy
    dy @ bT -> dy * b ; aT @ dy -> a * dy
    dy @ bT -> dy * bT ; aT @ dy -> aT * dy
You sum first and multiply then. A gradient is a sum of products, one for each entry along the axis that is summed over.
    dy @ bT -> dy.sum(axis=1)[:, None] * b.sum(axis=1)
    aT @ dy -> a.sum(axis=0)[:, None] * dy.sum(axis=0)
    dy @ bT -> dy.sum(axis=1)[:, None] * b.sum(axis=1) ; aT @ dy -> a.sum(axis=0)[:, None] * dy.sum(axis=0)
A gradient holds the last term of its sum only: add them all up.
    dy @ bT -> np.outer(dy[:, -1], b[:, -1])
    aT @ dy -> np.outer(a[-1], dy[-1])
    dy @ bT -> np.outer(dy[:, -1], b[:, -1]) ; aT @ dy -> np.outer(a[-1], dy[-1])
You divide by the number of rows. A mean is part of the loss, if there is one, and then in dy already.
    return -> db = db / len(a); return || da = da / len(a); return || da, db = da / len(a), db / len(a); return
The sign is turned round: an entry of A that makes Y larger gets the sign of dy.
    da, db -> -da, -db || da, -db || -da, db
    return -> da, db = -da, -db; return
You add to the matrices or subtract from them. The gradients alone are asked for.
    da, db -> a - da, b - db || a + da, b + db
A factor's gradient is made of dy and the other factor, not of the factor itself.
    b.T -> a.T
    a.T -> b.T
You make db out of da. It is made of a and dy.
    aT @ dy -> da.T @ dy
""",
)
def matmul_backward(dy, a, b):
    bT = b.T
    aT = a.T
    da = dy @ bT  # (n, p) (p, m): the sum over p
    db = aT @ dy  # (m, n) (n, p): the sum over n
    return da, db


# --- variance_backward -----------------------------------------------------------------------------------


def _variance_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for rows, n in ((3, 5), (4, 4), (1, 8), (6, 1)):
        name = f"{rows} row{'s' if rows > 1 else ''} of {n}"
        yield name, rng.standard_normal(rows), rng.standard_normal((rows, n)) + 2
    single = rng.standard_normal(2).astype(np.float32), rng.standard_normal((2, 9)).astype(np.float32)
    yield "float32, 2 rows of 9", *single


@exercise(
    chapter=2,
    difficulty=3,
    minutes=20,
    cases=_variance_cases,
    hints="""
First pretend that μ is a constant. What is the derivative of (x - μ)² / n?

Now let μ move: each x moves it by 1/n, and μ moves every term of the row by -2 (x - μ) / n. Add these up over the row.

The sum of (x - μ) over a row is 0, so only the direct way is left: 2 (x - μ) dv / n.
""",
    mistakes="""
You divide by n - 1: that is the variance of a sample. LayerNorm's divides by n.
    / x.shape[1] -> / (x.shape[1] - 1) || / max(x.shape[1] - 1, 1)
Your answer is 0 everywhere. The way through the mean adds 0 in the end; the direct way does not.
    return dv[:, None] * direct -> return np.zeros_like(x)
The 1/n of the mean is missing.
    / x.shape[1] ->
The 2 of the square is missing.
    direct = 2 * -> direct =
You add a term for the mean, and it comes to a factor (1 - 1/n) or (1 + 1/n). Sum it over all entries: Σ (x - μ) is 0, so the way through the mean adds nothing.
    * direct -> * direct * (1 - 1 / x.shape[1]) || * direct * (1 + 1 / x.shape[1])
The mean has not been subtracted.
    (x - mean) -> x
The mean is that of the whole array: each row has its own.
    x.mean(axis=1, keepdims=True) -> x.mean()
The mean is taken over the columns: the variance is that of a row.
    x.mean(axis=1, keepdims=True) -> x.mean(axis=0)
The mean of the rows has lost its axis: without keepdims=True, NumPy lines it up with the columns.
    x.mean(axis=1, keepdims=True) -> x.mean(axis=1)
What you subtract from x is n times too much. Is there a 1/n too few in that term?
    x.mean( -> x.sum(
What you subtract from x is n times too little. Is there a 1/n too many in that term?
    (x - mean) -> (x - mean / x.shape[1])
You divide by how many rows there are. The variance of a row is a mean over its n entries.
    / x.shape[1] -> / x.shape[0]
You divide by how many entries there are in all. The variance of a row is a mean over its n entries.
    / x.shape[1] -> / x.size
You multiply by n. The variance is a mean over the n entries of a row.
    / x.shape[1] -> * x.shape[1]
You divide by n twice: the mean of the squares has one 1/n.
    / x.shape[1] -> / x.shape[1] ** 2
You left dv out: multiply each row with the gradient of its variance.
    dv[:, None] * ->
dv (r,) lines up with the columns when it is multiplied with (r, n): give it a second axis, dv[:, None].
    dv[:, None] -> dv
You take one number for all rows out of dv. Each row has a gradient of its own.
    dv[:, None] -> dv.sum() || dv.mean()
dv is a factor, and comes in once.
    dv[:, None] -> dv[:, None] ** 2
    dv[:, None] * -> dv[:, None] +
The sign is turned round: an entry above the mean raises the variance when it grows.
    (x - mean) -> (mean - x)
The differences from the mean are squared still, or have lost their sign: the derivative of a square is twice what was squared.
    (x - mean) -> (x - mean) ** 2 || np.abs(x - mean)
    2 * (x - mean) -> (x - mean) ** 2
That is the derivative of the standard deviation: there is no root in the variance.
    * direct -> * direct / (2 * x.std(axis=1, keepdims=True))
That divides by the standard deviation, as LayerNorm does. The derivative of the variance alone is asked for, and there is no root in it.
    2 * (x - mean) / x.shape[1] -> (x - mean) / x.std(axis=1, keepdims=True) || (x - mean) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    2 * (x - mean) / x.shape[1] -> (x - mean) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-12)
The variance itself is in your answer. Its derivative is asked for: how much it moves when an entry moves.
    return dv[:, None] * direct -> return dv * x.var(axis=1) || return dv[:, None] * x.var(axis=1, keepdims=True) * np.ones_like(x)
You add up the entries of dx: dx has the shape of x, a number for every entry.
    return dv[:, None] * direct -> return (dv[:, None] * direct).sum(axis=1) || return (dv[:, None] * direct).sum(axis=0)
""",
)
def variance_backward(dv, x):
    mean = x.mean(axis=1, keepdims=True)
    direct = 2 * (x - mean) / x.shape[1]  # the way through the mean adds Σ (x - μ) = 0
    return dv[:, None] * direct


# --- numerical_gradient ----------------------------------------------------------------------------------


def _numerical_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    weights = rng.standard_normal((3, 4))

    def curved(x):
        return float((np.exp(x) * weights).sum())

    def joint(x):
        return float(((x + 1) ** 2).sum() ** 1.5)

    yield "a sum of exponentials, (3, 4)", curved, rng.standard_normal((3, 4))
    yield "a function of all entries together, (5,)", joint, rng.standard_normal(5)
    yield "three axes, (2, 3, 4)", joint, rng.standard_normal((2, 3, 4)) / 2
    yield "one entry, (1, 1)", joint, rng.standard_normal((1, 1)) + 2
    yield "a number alone, ()", joint, np.array(rng.uniform(1, 2))
    yield "an x that is a view, (3, 4)", curved, rng.standard_normal((4, 3)).T
    for f in (curved, joint):
        yield "h = 0.1, where the difference is coarse", f, rng.standard_normal((3, 4)), 0.1


@exercise(
    chapter=2,
    difficulty=1,
    minutes=10,
    cases=_numerical_cases,
    rtol=1e-7,
    atol=1e-7,
    hints="""
for index in np.ndindex(x.shape) walks over all places of an array of any shape.

Make copies: up = x.copy(); up[index] += h.
""",
    mistakes="""
You move up only, or down only. The difference to both sides is asked for: its error falls with h², not with h.
    down[index] -= h -> ; (2 * h) -> h
    up[index] += h -> ; (2 * h) -> h
You move to one side only, and divide by 2h: the two places are h apart. Move to both sides.
    down[index] -= h ->
    up[index] += h ->
Up and down are 2h apart: divide by 2h.
    (2 * h) -> h
Python divides by 2 first and multiplies with h then: write / (2 * h).
    / (2 * h) -> / 2 * h
You move all entries at once: that is the slope along the diagonal, one number. Move one entry at a time.
    up[index] -> up ; down[index] -> down
    return gradient -> return (f(x + h) - f(x - h)) / (2 * h)
You move a whole row, or all of some axes, at once. Every entry has a slope of its own: walk over all places.
    np.ndindex(x.shape) -> np.ndindex(x.shape[:1]) || range(len(x)) || range(x.shape[0])
    np.ndindex(x.shape) -> range(len(x)) ; np.zeros_like(x) -> np.zeros(len(x))
    [index] -> [..., index] ; np.ndindex(x.shape) -> range(x.shape[-1])
Your loops fit arrays with a certain number of axes only. np.ndindex(x.shape) walks over all places of any array.
    np.ndindex(x.shape) -> np.ndindex(x.shape[:2]) || np.ndindex(x.shape[0], x.shape[1]) || np.ndindex((x.shape[0],) if x.ndim == 1 else x.shape[:2])
You move entries of x itself and do not put them back: the later entries are then measured elsewhere.
    x.copy(), x.copy() -> x.copy(), x || x, x.copy()
Your copies are made once, before the loop: entries that were moved stay moved, and the later ones are measured elsewhere.
    gradient = np.zeros_like(x) -> gradient, up, down = np.zeros_like(x), x.copy(), x.copy() ; up, down = x.copy(), x.copy() ->
Both times f gets the same numbers, so that every difference is 0: it never sees the array that was moved, or up and down are one and the same array.
    x.copy(), x.copy() -> x, x
    up, down = x.copy(), x.copy() -> up = down = x.copy()
Your array holds whole numbers: what comes after the point is cut off.
    np.zeros_like(x) -> np.zeros(x.shape, dtype=int)
x.ravel() and x.reshape(-1) are copies where x is a view with gaps or a transpose: f then sees no change of x.
    return gradient -> return gradient if x.flags.c_contiguous else np.zeros_like(x)
You have a step of your own: use h.
    gradient = np.zeros_like(x) -> gradient, h = np.zeros_like(x), 1e-6
You move by h / 2 to each side. By h is asked for.
    += h -> += h / 2 ; -= h -> -= h / 2
    += h -> += h / 2 ; -= h -> -= h / 2 ; (2 * h) -> h
You move each entry by a share of itself. By h is asked for, whatever the entry.
    += h -> *= 1 + h ; -= h -> *= 1 - h
You put h and -h in the place of the entry. Move it by h from where it is.
    += h -> = h ; -= h -> = -h
You move away from 0, and the gradient is asked for at x.
    x.copy(), x.copy() -> np.zeros_like(x), np.zeros_like(x)
You give f one entry. It takes an array of the shape of x, with one entry moved.
    f(up) - f(down) -> f(x[index] + h) - f(x[index] - h)
The gradient has the shape of x; yours is flat.
    return gradient -> return gradient.ravel()
The sign is turned round: f moved up minus f moved down.
    f(up) - f(down) -> f(down) - f(up)
You add the two values of f. The gradient is made of their difference.
    f(up) - f(down) -> f(up) + f(down)
The gradient has lost its sign: f can fall where an entry grows.
    f(up) - f(down) -> abs(f(up) - f(down))
You take f at four places, which is another formula. The central difference has two, x + h and x - h.
    (f(up) - f(down)) / (2 * h) -> (8 * (f(up) - f(down)) - f(2 * up - x) + f(2 * down - x)) / (12 * h)
The change of f still has to be divided by 2h.
    / (2 * h) ->
Only one entry has a gradient: does your `return` stand inside of the loop?
    np.ndindex(x.shape) -> itertools.islice(np.ndindex(x.shape), 1)
An entry's slope is added to those of the entries before it. Every entry has its own.
    return gradient -> return gradient.cumsum().reshape(x.shape)
""",
)
def numerical_gradient(f, x, h=1e-6):
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += h
        down[index] -= h
        gradient[index] = (f(up) - f(down)) / (2 * h)
    return gradient
