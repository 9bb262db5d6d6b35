"""Chapter 2: reverse mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from minigrad.course.check.exercise import Case, Exercise, Misconception

__all__ = ["gradients", "matmul_backward", "numerical_gradient", "variance_backward"]

# --- gradients -------------------------------------------------------------------------------------------


def _gradients(graph, output):
    grad = dict.fromkeys(graph, 0.0)
    grad[output] = 1.0
    for name in reversed(graph):  # newest first: a value is complete before it is passed on
        for source, slope in graph[name]:
            grad[source] += grad[name] * slope
    return grad


def _graph_cases(rng: np.random.Generator) -> Iterator[Case]:
    a, b, c, d = (round(float(value), 3) for value in rng.uniform(1.5, 4, 4))
    yield Case("a chain", ({"x": [], "y": [("x", a)], "z": [("y", b)]}, "z"))
    yield Case("a value that is used twice in one step", ({"x": [], "y": [("x", a), ("x", b)]}, "y"))
    diamond = {"x": [], "left": [("x", a)], "right": [("x", b)], "y": [("left", c), ("right", d)]}
    yield Case("two paths that meet", (diamond, "y"))
    skip = {"x": [], "y": [("x", a)], "z": [("y", b), ("x", c)], "loss": [("z", d), ("y", 1.0)]}
    yield Case("a residual connection", (skip, "loss"))
    late = {"x": [], "a": [("x", a)], "b": [("a", b)], "c": [("b", c)], "y": [("a", 1.0), ("c", d)]}
    yield Case("a short and a long path to the same value", (late, "y"))
    yield Case(
        "an output with more behind it, and a value beside it",
        ({**diamond, "w": [], "far": [("y", 2.0)]}, "y"),
    )


def _as_reached(next_one, again):
    """Wrong: values in the order in which they are reached, `again` each time or only the first time."""

    def wrong(graph, output):
        grad = dict.fromkeys(graph, 0.0)
        grad[output] = 1.0
        waiting, seen = [output], {output}
        while waiting:
            name = waiting.pop(next_one)
            for source, slope in graph[name]:
                grad[source] += grad[name] * slope
                if again or source not in seen:
                    seen.add(source)
                    waiting.append(source)
        return grad

    return wrong


def _overwriting(graph, output):
    grad = dict.fromkeys(graph, 0.0)
    grad[output] = 1.0
    for name in reversed(graph):
        for source, slope in graph[name]:
            grad[source] = grad[name] * slope
    return grad


def _oldest_first(graph, output):
    grad = dict.fromkeys(graph, 0.0)
    grad[output] = 1.0
    for name in graph:
        for source, slope in graph[name]:
            grad[source] += grad[name] * slope
    return grad


def _slopes_added(graph, output):
    grad = dict.fromkeys(graph, 0.0)
    grad[output] = 1.0
    for name in reversed(graph):
        for source, slope in graph[name]:
            grad[source] += grad[name] + slope
    return grad


def _last_value_is_the_output(graph, output):
    return _gradients(graph, list(graph)[-1])


def _reached_only(graph, output):
    grad = {output: 1.0}
    for name in reversed(graph):
        for source, slope in graph[name]:
            if name in grad:
                grad[source] = grad.get(source, 0.0) + grad[name] * slope
    return grad


def _never_started(graph, output):
    return dict.fromkeys(graph, 0.0)


def _output_left_out(graph, output):
    return {**_gradients(graph, output), output: 0.0}


_TOO_EARLY = (
    "You pass a value's gradient on before everything that used the value has been visited. Newest first is an order in "
    "which that cannot happen."
)

gradients = Exercise(
    name="gradients",
    chapter=2,
    difficulty=2,
    minutes=15,
    answer=_gradients,
    cases=_graph_cases,
    misconceptions=[
        Misconception(
            "You overwrite where you should add: a value that is used twice gets the gradient of both uses.",
            _overwriting,
        ),
        Misconception(
            "You visit the oldest value first. The gradient flows from the output back, so the newest comes first.",
            _oldest_first,
        ),
        Misconception(_TOO_EARLY, _as_reached(-1, again=True)),
        Misconception(_TOO_EARLY, _as_reached(-1, again=False)),
        Misconception(_TOO_EARLY, _as_reached(0, again=False)),
        Misconception("Along a path slopes multiply; only different paths are added.", _slopes_added),
        Misconception(
            "You start from the last value of the graph; the output asked for may be another.",
            _last_value_is_the_output,
        ),
        Misconception(
            "Values that the output does not depend on belong in the answer too, with 0.", _reached_only
        ),
        Misconception("The output's own gradient is 1, and belongs in the answer.", _output_left_out),
        Misconception("The output's own gradient is 1, and nothing flows until it is there.", _never_started),
    ],
    hints=[
        "Start with 0 for every value and 1 for the output. Which value may pass its gradient on first?",
        "A dictionary keeps the order in which it was made, and reversed(graph) walks it from the newest back.",
        "For each value, newest first, and each of its (source, slope): grad[source] += grad[value] * slope.",
    ],
)

# --- matmul_backward -------------------------------------------------------------------------------------


def _matmul_backward(dy, a, b):
    return dy @ b.T, a.T @ dy


def _matmul_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n, m, p in ((3, 5, 2), (4, 4, 4), (1, 6, 1)):
        arrays = (rng.standard_normal((n, p)), rng.standard_normal((n, m)), rng.standard_normal((m, p)))
        yield Case(f"a ({n}, {m}), b ({m}, {p})", arrays)
    single = tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3), (2, 7), (7, 3)))
    yield Case("float32, a (2, 7), b (7, 3)", single)


matmul_backward = Exercise(
    name="matmul_backward",
    chapter=2,
    difficulty=1,
    minutes=8,
    answer=_matmul_backward,
    cases=_matmul_cases,
    misconceptions=[
        Misconception(
            "The two gradients are in the other order: da first, then db.",
            lambda dy, a, b: (a.T @ dy, dy @ b.T),
        ),
        Misconception(
            "You multiply dy with b as it is. dy (n, p) and b (m, p) meet along p: b has to be transposed.",
            lambda dy, a, b: (dy @ b, a.T @ dy),
        ),
        Misconception(
            "You multiply a with dy as it is. a (n, m) and dy (n, p) meet along n: a has to be transposed.",
            lambda dy, a, b: (dy @ b.T, a @ dy),
        ),
        Misconception(
            "Both factors are missing their transpose: write down which axis is summed over.",
            lambda dy, a, b: (dy @ b, a @ dy),
        ),
        Misconception("db comes out transposed: (m, p) is asked for.", lambda dy, a, b: (dy @ b.T, dy.T @ a)),
        Misconception("da comes out transposed: (n, m) is asked for.", lambda dy, a, b: (b @ dy.T, a.T @ dy)),
        Misconception(
            "You left dy out: those are the gradients of the sum of all entries of Y.",
            lambda dy, a, b: (np.ones_like(dy) @ b.T, a.T @ np.ones_like(dy)),
        ),
        Misconception(
            "That is the product of dy with the other factor entry by entry.",
            lambda dy, a, b: (dy * b, a * dy),
        ),
    ],
    hints=[
        "The shapes decide: da is made of dy (n, p) and b (m, p), and has shape (n, m).",
        "dA = dY Bᵀ. For the other one, sum over the rows n.",
    ],
)

# --- variance_backward -----------------------------------------------------------------------------------


def _variance_backward(dv, x):
    centred = x - x.mean(axis=1, keepdims=True)  # the way through the mean adds Σ (x - μ) = 0
    return 2 * centred * dv[:, None] / x.shape[1]


def _variance_cases(rng: np.random.Generator) -> Iterator[Case]:
    for rows, n in ((3, 5), (4, 4), (1, 8), (6, 1)):
        yield Case(
            f"{rows} row{'s' if rows > 1 else ''} of {n}",
            (rng.standard_normal(rows), rng.standard_normal((rows, n)) + 2),
        )
    single = (rng.standard_normal(2).astype(np.float32), rng.standard_normal((2, 9)).astype(np.float32))
    yield Case("float32, 2 rows of 9", single)


def _with_factor(factor):
    def wrong(dv, x):
        return factor(x.shape[1]) * (x - x.mean(axis=1, keepdims=True)) * dv[:, None]

    return wrong


variance_backward = Exercise(
    name="variance_backward",
    chapter=2,
    difficulty=3,
    minutes=20,
    answer=_variance_backward,
    cases=_variance_cases,
    misconceptions=[
        Misconception(
            "You divide by n - 1: that is the variance of a sample. LayerNorm's divides by n.",
            lambda dv, x: 2 * (x - x.mean(axis=1, keepdims=True)) * dv[:, None] / max(x.shape[1] - 1, 1),
        ),
        Misconception("The 1/n of the mean is missing.", _with_factor(lambda n: 2)),
        Misconception("The 2 of the square is missing.", _with_factor(lambda n: 1 / n)),
        Misconception("The 2 of the square and the 1/n of the mean are missing.", _with_factor(lambda n: 1)),
        Misconception(
            "You add a term for the mean, and it comes to a factor (1 - 1/n). Sum it over all entries: Σ (x - μ) is 0, so "
            "the way through the mean adds nothing.",
            _with_factor(lambda n: 2 / n * (1 - 1 / n)),
        ),
        Misconception("The mean has not been subtracted.", lambda dv, x: 2 * x * dv[:, None] / x.shape[1]),
        Misconception(
            "The mean is that of the whole array: each row has its own.",
            lambda dv, x: 2 * (x - x.mean()) * dv[:, None] / x.shape[1],
        ),
        Misconception(
            "The mean is taken over the columns: the variance is that of a row.",
            lambda dv, x: 2 * (x - x.mean(axis=0)) * dv[:, None] / x.shape[1],
        ),
        Misconception(
            "You left dv out: multiply each row with the gradient of its variance.",
            lambda dv, x: 2 * (x - x.mean(axis=1, keepdims=True)) / x.shape[1],
        ),
        Misconception(
            "dv (r,) lines up with the columns when it is multiplied with (r, n): give it a second axis, dv[:, None].",
            lambda dv, x: 2 * (x - x.mean(axis=1, keepdims=True)) * dv / x.shape[1],
        ),
        Misconception(
            "The sign is turned round: an entry above the mean raises the variance when it grows.",
            _with_factor(lambda n: -2 / n),
        ),
    ],
    hints=[
        "First pretend that μ is a constant. What is the derivative of (x - μ)² / n?",
        "Now let μ move: each x moves it by 1/n, and μ moves every term of the row by -2 (x - μ) / n. Add these up over the row.",
        "The sum of (x - μ) over a row is 0, so only the direct way is left: 2 (x - μ) dv / n.",
    ],
)

# --- numerical_gradient ----------------------------------------------------------------------------------


def _numerical_gradient(f, x, h=1e-6):
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += h
        down[index] -= h
        gradient[index] = (f(up) - f(down)) / (2 * h)
    return gradient


def _numerical_cases(rng: np.random.Generator) -> Iterator[Case]:
    weights = rng.standard_normal((3, 4))

    def curved(x):
        return float((np.exp(x) * weights).sum())

    def joint(x):
        return float((x**2).sum() ** 1.5)

    yield Case("a sum of exponentials, (3, 4)", (curved, rng.standard_normal((3, 4))))
    yield Case("a function of all entries together, (5,)", (joint, rng.standard_normal(5)))
    yield Case("one entry, (1, 1)", (joint, rng.standard_normal((1, 1)) + 2))
    yield Case("h = 0.1, where the difference is coarse", (curved, rng.standard_normal((3, 4)), 0.1))


def _forward_difference(f, x, h=1e-6):
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up = x.copy()
        up[index] += h
        gradient[index] = (f(up) - f(x)) / h
    return gradient


def _half(f, x, h=1e-6):
    return 2 * _numerical_gradient(f, x, h)


def _all_at_once(f, x, h=1e-6):
    return np.full_like(x, (f(x + h) - f(x - h)) / (2 * h))


def _all_at_once_number(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)


def _leaves_x_moved(f, x, h=1e-6):
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        x[index] += h
        up = f(x)
        x[index] -= 2 * h
        gradient[index] = (up - f(x)) / (2 * h)
    return gradient


def _own_step(f, x, h=1e-6):
    return _numerical_gradient(f, x)


def _flat(f, x, h=1e-6):
    return _numerical_gradient(f, x, h).ravel()


def _backwards(f, x, h=1e-6):
    return -_numerical_gradient(f, x, h)


def _never_divided(f, x, h=1e-6):
    return _numerical_gradient(f, x, h) * 2 * h


numerical_gradient = Exercise(
    name="numerical_gradient",
    chapter=2,
    difficulty=1,
    minutes=10,
    answer=_numerical_gradient,
    cases=_numerical_cases,
    misconceptions=[
        Misconception(
            "You move up only. The difference to both sides is asked for: its error falls with h², not with h.",
            _forward_difference,
        ),
        Misconception("Up and down are 2h apart: divide by 2h.", _half),
        Misconception(
            "You move all entries at once: that is the slope along the diagonal, one number. Move one entry at a time.",
            _all_at_once,
        ),
        Misconception(
            "You move all entries at once: that is the slope along the diagonal, one number. Move one entry at a time.",
            _all_at_once_number,
        ),
        Misconception(
            "You move entries of x itself and do not put them back: the later entries are then measured elsewhere.",
            _leaves_x_moved,
        ),
        Misconception("You have a step of your own: use h.", _own_step),
        Misconception("The gradient has the shape of x; yours is flat.", _flat),
        Misconception("The sign is turned round: f moved up minus f moved down.", _backwards),
        Misconception("The change of f still has to be divided by 2h.", _never_divided),
    ],
    hints=[
        "for index in np.ndindex(x.shape) walks over all places of an array of any shape.",
        "Make copies: up = x.copy(); up[index] += h.",
    ],
    rtol=1e-6,
    atol=1e-7,
)
