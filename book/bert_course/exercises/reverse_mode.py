"""Chapter `reverse_mode`: reverse mode."""

from __future__ import annotations

import itertools  # noqa: F401
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_course.check.differences import Traced
from bert_course.check.exercise import exercise
from bert_course.common.engine import course_bert
from bert_course.exercises.reverse_mode_programs import Program, random_program

engine = course_bert()
unbroadcast = engine.unbroadcast

# --- differentiate ---------------------------------------------------------------------------------------


def _newest_first(output, sources, place, turn):
    """A right order, from `output` back; place: of what waits, which comes next; turn: -1 to turn sources round."""
    waiting, found = [output], [output]
    for value in found:
        found += [source for source in dict.fromkeys(sources(value)) if source not in found]
    users = [source for value in found for source in set(sources(value))]
    while waiting:
        value = waiting.pop(place)
        yield value
        for source in dict.fromkeys(sources(value)[::turn]):
            users.remove(source)
            if source not in users:
                waiting.append(source)


def _sorted_from(output, sources, turn):
    """The same by a depth-first sort."""
    done: list[Any] = []

    def visit(value):
        if value not in done:
            for source in sources(value)[::turn]:
                visit(source)
            done.append(value)

    visit(output)
    return reversed(done)


def _program_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def numbers(count):
        return [round(float(value), 3) for value in rng.uniform(0.3, 1.4, count) * rng.choice([-1, 1], count)]

    def residual(x, w, b):
        y = (w * x + b).tanh()
        return x + y * y

    def with_values_beside(a, b):
        c = a * b
        output = c + a
        c * c * b
        return output

    def short_and_long(a, b):
        c = a * b
        d = c.tanh()
        return d * d * c + c

    for name, run, inputs in (
        ("w x + b", lambda x, w, b: w * x + b, "xwb"),
        ("tanh", lambda a: a.tanh(), "a"),
        ("a * a", lambda a: a * a, "a"),
        ("a * a + a", lambda a: a * a + a, "a"),
        ("a residual connection", residual, "xwb"),
        ("short and long paths to one value", short_and_long, "ab"),
    ):
        yield name, Program(run, inputs), numbers(len(inputs))
    yield "two inputs that are the same number", Program(lambda a, b: a * b * b, "ab"), numbers(1) * 2
    yield "an input that is not used", Program(lambda a, b: b.tanh() * b, "ab"), numbers(2)
    yield "values that the output is not made of", Program(with_values_beside, "ab"), numbers(2)
    yield "an output that is an input", Program(lambda a, b: b, "ab"), numbers(2)
    for steps in (5, 8, 8):
        yield (
            f"a random program of {steps} steps",
            Program(random_program(rng, 3, steps), "abc"),
            numbers(3),
        )


def _last_path(output):
    """Walks each path and lets every value keep what the last one brings; nothing is left to visit."""
    waiting: list[Any] = [(output, 1.0)]
    while waiting:
        value, value.grad = waiting.pop()
        paths = [
            (source, value.grad * slope) for source, slope in zip(value.inputs, value.slopes, strict=True)
        ]
        waiting += reversed(paths)
    return []


def _walked(output, sources, place, again):
    """Values as a walk from the output reaches them; again: each time, not only the first."""
    waiting, seen = [output], {output}
    while waiting:
        value = waiting.pop(place)
        yield value
        for source in sources(value):
            if again or source not in seen:
                seen.add(source)
                waiting.append(source)


def _down_from(value):
    """The same by recursion: a value, then all that its first input was made of, then its second."""
    yield value
    for source in value.inputs:
        yield from _down_from(source)


@exercise(
    difficulty=2,
    minutes=25,
    cases=_program_cases,
    hints="""
The program calls +, * and .tanh() on what you give it. So give it objects of a class of yours, with __add__, __mul__ and
tanh, each of which returns a new object.

Each object keeps its value, the objects it was made of, and the local slope for each of them. Keep all objects in a list
as they are made: reversed, it is "newest first".

Set the output's gradient to 1. Then, for each object from the newest back, and each of its inputs: add the object's gradient
times the local slope to the input's.
""",
    mistakes="""
[one-use] You keep only one use of a value that is used more than once: add the gradients of all uses.
    source.grad += -> source.grad =
    source.grad += -> source.grad = ; reversed(order) -> _sorted_from(output, lambda v: v.inputs, 1) || _sorted_from(output, lambda v: v.inputs, -1) || _newest_first(output, lambda v: v.inputs, 0, 1) || _newest_first(output, lambda v: v.inputs, 0, -1) || _newest_first(output, lambda v: v.inputs, -1, 1) || _newest_first(output, lambda v: v.inputs, -1, -1)
    reversed(order) -> _last_path(output)
A value that is used twice in one step, as in a * a, gets one share of the two: their slopes are added.
    zip(value.inputs, value.slopes, strict=True) -> dict(zip(value.inputs, value.slopes, strict=True)).items()
The factors' slopes are the wrong way round: the slope of a * b for a is b.
    (other.value, self.value) -> (self.value, other.value)
A sum has slope 1 for each of its inputs, whatever their values are.
    (1.0, 1.0) -> (self.value, other.value) || (other.value, self.value) || (0.5, 0.5)
[slope-at-the-input] You take tanh's slope at its input x, as 1 - x². It is 1 - y², with y the output.
    1 - y * y -> 1 - self.value * self.value
You take tanh's slope at its output: 1 - tanh(y)². With y = tanh(x) it is 1 - y².
    1 - y * y -> 1 - math.tanh(y) ** 2
That is the slope of the sigmoid, y (1 - y). That of tanh is 1 - y².
    1 - y * y -> y * (1 - y)
The square is missing in tanh's slope: 1 - y².
    1 - y * y -> 1 - y
Along a path slopes multiply; only different paths are added.
    value.grad * slope -> (value.grad + slope)
You pass on the local slope alone. Multiply it by the gradient of the value that was computed with it.
    value.grad * slope -> slope
The rule of tanh leaves out the gradient of its output: multiply the local slope by it, as in a product.
    value.grad * slope -> (value.grad if len(value.inputs) == 2 else 1) * slope || (value.grad if len(value.inputs) == 2 else value.grad != 0) * slope
You pass on the gradient without the local slope: multiply by it.
    value.grad * slope -> value.grad
You look a value up by its number. Two values can be the same number and still be two: the object itself is the key.
    output.grad = 1.0 -> grad = {output.value: 1.0} ; source.grad += value.grad * slope -> grad[source.value] = grad.get(source.value, 0.0) + grad.get(value.value, 0.0) * slope ; value.grad for value in given -> grad.get(value.value, 0.0) for value in given
A number that the output does not depend on has the gradient 0, not None.
    value.grad for value in given -> value.grad or None for value in given
You visit the oldest value first, or the output alone: the gradient flows from the output back, so the newest comes first.
    reversed(order) -> order || [output]
You pass a value's gradient on before everything that used the value has been visited. Reverse topological order, newest first, rules that out.
    source.grad += -> source.grad  += ; reversed(order) -> _walked(output, lambda v: v.inputs, -1, True) || _walked(output, lambda v: v.inputs, 0, True) || _walked(output, lambda v: v.inputs, -1, False) || _walked(output, lambda v: v.inputs, 0, False) || _down_from(output)
    for value in reversed(order) -> def visit(value) ; += value.grad * slope -> += value.grad * slope; visit(source) ; return [ -> visit(output); return [
    for value in reversed(order) -> def visit(value, seen=set()) ; in zip( -> in seen.add(value) or zip( ; += value.grad * slope -> += value.grad * slope; source in seen or visit(source) ; return [ -> visit(output); return [
Only one input of each operation gets a gradient: a sum and a product have two.
    zip(value.inputs, value.slopes, strict=True) -> list(zip(value.inputs, value.slopes, strict=True))[:1] || list(zip(value.inputs, value.slopes, strict=True))[-1:]
You start from the value that was made last; the output is what the program returns.
    output.grad = 1.0 -> order[-1].grad = 1.0
Nothing flows until the output has its own gradient, 1.
    output.grad = 1.0 -> pass
Your gradients all start with 1. Only the output's should; the others start with 0.
    self.slopes, self.grad = value, inputs, slopes, 0.0 -> self.slopes, self.grad = value, inputs, slopes, 1.0
The gradients are in the other order: one for each number, in the order of the numbers.
    for value in given] -> for value in reversed(given)]
You return the values that went in. Their gradients are asked for.
    value.grad for value in given -> value.value for value in given
You return the output's value. The gradients of the inputs are asked for, as a list.
    return [value.grad for value in given] -> return output.value
Those are the gradients of all values. Only those of the numbers that went in are asked for.
    [value.grad for value in given] -> [value.grad for value in order]
""",
)
def differentiate(program, numbers):
    class Var:
        def __init__(self, value, inputs=(), slopes=()):
            self.value, self.inputs, self.slopes, self.grad = value, inputs, slopes, 0.0
            order.append(self)  #: this value, the newest so far

        def __add__(self, other):
            return Var(self.value + other.value, (self, other), (1.0, 1.0))  #: the sum, with slope 1 for each

        def __mul__(self, other):
            return Var(self.value * other.value, (self, other), (other.value, self.value))  #: the product

        def tanh(self):
            y = math.tanh(self.value)  #: the output y of tanh
            return Var(y, (self,), (1 - y * y,))  #: tanh's output, with slope 1 - y²

    order: list = []  #: all values made so far, oldest first
    given = [Var(number) for number in numbers]  #: one object for each input, in order
    output = program(*given)  #: the output that the program makes of the inputs
    output.grad = 1.0  #: the derivative of the output with respect to itself
    for value in reversed(order):  #: all values, newest first
        for source, slope in zip(value.inputs, value.slopes, strict=True):  #: each input, with its slope
            source.grad += value.grad * slope  #: the value's gradient times its local slope
    return [value.grad for value in given]


# --- backward --------------------------------------------------------------------------------------------


def _graph_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def leaf(*shape: int, requires_grad: bool = True) -> Any:
        return engine.Tensor(rng.uniform(1.5, 4, shape), requires_grad)

    def walk(output: Any, **leaves: Any) -> Any:
        output.leaves = leaves  # what the check looks at afterwards
        return output

    x = leaf()
    yield "a chain", walk((x * 3.0) * 2.0, x=x)
    x = leaf(3)
    yield "a value that is used twice in one step", walk((x * x).sum(), x=x)
    x = leaf()
    y = x * x
    yield "two paths that meet", walk(y * 2.0 + y * y, x=x)
    x = leaf()
    h = x * 2.0
    yield "a residual connection", walk(h + h * 3.0, x=x)
    x = leaf()
    a = x * 2.0
    yield "a long and a short path to the same value", walk((a * 3.0 * 1.5 * 2.0) * a + a, x=x)
    X, W, b = leaf(4, 3), leaf(3, 2), leaf(2)
    yield "a layer whose bias is stretched", walk(((X @ W + b).tanh() * leaf(4, 2)).sum(), X=X, W=W, b=b)
    x, given = leaf(2), leaf(2, requires_grad=False)
    yield "a constant, which wants no gradient", walk((x * given + given).sum(), x=x, given=given)
    x = leaf(2)
    x.grad = np.array([10.0, 20.0], np.float32)
    yield "a leaf that has a gradient from before", walk((x * 2.0).sum(), x=x)
    x = leaf()
    h = x * 2.0
    h.grad = np.float32(7.0)  # as a walk leaves it that keeps what it adds up there
    yield "a value in between, with something left in its .grad", walk(h * h, x=x)
    x = leaf(2)
    x.grad = np.array([10.0, 20.0], np.float32)
    yield "an output that is a leaf itself", walk(x, x=x)
    x, w = leaf(3), leaf(3)
    yield "added again after another, x + w + x", walk(x + w + x, x=x, w=w)


def gradients_of_leaves(returned: Any, arguments: Mapping[str, Any]) -> Traced:
    """What the walk has left in .grad of the leaves of a case."""
    return Traced.of(
        {}, {f"the gradient of {name}": leaf.grad for name, leaf in arguments["output"].leaves.items()}
    )


@exercise(
    difficulty=2,
    minutes=15,
    cases=_graph_cases,
    into="output",
    observed=gradients_of_leaves,
    hints="""
Keep a dictionary from tensors to what has arrived for them so far; at first, the output gets ones of its own shape. Which tensor may pass its gradient on first?

A tensor has a higher number than its parents. So the newest in the dictionary, max(gradients, key=lambda tensor: tensor.number), has received the gradients of all that used it: take it out with pop.

A leaf has no rule: add what arrived to its .grad, which may be None. Any other passes tensor.rule(dy) on, one gradient for each parent that wants one, summed back to the parent's shape by unbroadcast, and added to what the parent has.
""",
    mistakes="""
[one-use] You keep only one use of a value that is used more than once: add the gradients of all uses.
    gradients[parent] = gradients[parent] + gradient if parent in gradients else gradient -> gradients[parent] = gradient
    gradients[parent] = gradients[parent] + gradient if parent in gradients else gradient -> gradients.setdefault(parent, gradient)
[too-early] You pass a value's gradient on before everything that used the value has been visited. Reverse topological order, newest first, rules that out.
    output.grad, waiting = np.ones_like(output.data), [output]
    for tensor in waiting:
        for parent, gradient in zip(tensor.parents, tensor.rule(tensor.grad) if tensor.rule else ()):
            if parent.requires_grad:
                gradient = unbroadcast(gradient, parent.shape)
                parent.grad = gradient if parent.grad is None else parent.grad + gradient
                if parent not in waiting:
                    waiting.append(parent)

    output.grad, waiting = np.ones_like(output.data), [output]
    while waiting:
        tensor = waiting.pop()
        for parent, gradient in zip(tensor.parents, tensor.rule(tensor.grad) if tensor.rule else ()):
            if parent.requires_grad:
                gradient = unbroadcast(gradient, parent.shape)
                parent.grad = gradient if parent.grad is None else parent.grad + gradient
                waiting.append(parent)
A parent that broadcasting has stretched gets a gradient of the stretched shape. unbroadcast sums it back.
    gradient = unbroadcast(gradient, parent.shape) -> pass
You give a gradient to constants too. Only what has requires_grad wants one.
    if parent.requires_grad: -> if True:
You overwrite the gradient that a leaf has from before. The walk should add to it.
    tensor.grad = dy if tensor.grad is None else tensor.grad + dy -> tensor.grad = dy
You pass on the local slope alone. The rule needs the gradient of the value that was computed with it.
    tensor.rule(dy) -> tensor.rule(np.ones_like(dy))
You give the rule the value itself. It needs the gradient for the value.
    tensor.rule(dy) -> tensor.rule(tensor.data)
You do not visit all parents of a value: there can be any number.
    zip(tensor.parents, tensor.rule(dy), strict=True) -> zip(tensor.parents[:1], tensor.rule(dy), strict=False)
The gradients go to the wrong parents: the rule returns them in the order of the parents.
    zip(tensor.parents, tensor.rule(dy), strict=True) -> zip(tensor.parents[::-1], tensor.rule(dy), strict=True)
The output's own gradient is 1, not 0, and nothing flows without it.
    np.ones_like(output.data) -> np.zeros_like(output.data)
You add up in .grad of the values in between, where an earlier walk may have left something. Only leaves keep a gradient.
    gradients = {output: np.ones_like(output.data)} -> gradients = {output: np.ones_like(output.data) + (0 if output.grad is None or output.rule is None else output.grad)} ; dy = gradients.pop(tensor) -> dy = gradients.pop(tensor); dy = dy + tensor.grad if tensor.rule is not None and tensor.grad is not None else dy
You start with the output's value. Its gradient is 1: how much the output moves when it moves itself.
    np.ones_like(output.data) -> output.data
The sign is wrong: a gradient points where the output grows.
    tensor.grad + dy -> tensor.grad - dy ; = dy if -> = -dy if
""",
)
def backward(output):
    gradients = {output: np.ones_like(output.data)}  #: what has arrived so far: ones for the output
    while gradients:
        tensor = max(
            gradients, key=lambda tensor: tensor.number
        )  #: the newest tensor: all that used it have passed on
        dy = gradients.pop(tensor)  #: the gradient of this tensor, from all its uses
        if tensor.rule is None:  # a leaf
            tensor.grad = dy if tensor.grad is None else tensor.grad + dy  #: an old gradient, if any, plus dy
            continue
        for parent, gradient in zip(tensor.parents, tensor.rule(dy), strict=True):  #: a gradient per parent
            if parent.requires_grad:
                gradient = unbroadcast(gradient, parent.shape)  #: the gradient, summed to the parent's shape
                gradients[parent] = gradients[parent] + gradient if parent in gradients else gradient


# --- variance_backward -----------------------------------------------------------------------------------


def _variance_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for rows, n in ((3, 5), (4, 4), (1, 8), (6, 1)):
        name = f"{rows} row{'s' if rows > 1 else ''} of {n}"
        yield name, rng.standard_normal(rows), rng.standard_normal((rows, n)) + 2
    single = rng.standard_normal(2).astype(np.float32), rng.standard_normal((2, 9)).astype(np.float32)
    yield "float32, 2 rows of 9", *single


@exercise(
    difficulty=3,
    minutes=20,
    cases=_variance_cases,
    same_dtype=True,
    hints="""
First pretend that μ is a constant. What is the derivative of (x - μ)² / n?

Now let μ move: each x moves it by 1/n, and μ moves every term of the row by -2 (x - μ) / n. Add these up over the row.

The sum of (x - μ) over a row is 0, so only the direct way is left: 2 (x - μ) dv / n.
""",
    mistakes="""
[sample-variance] You divide by n - 1: that is the sample variance. LayerNorm's divides by n.
    / x.shape[1] -> / (x.shape[1] - 1) || / max(x.shape[1] - 1, 1)
Your answer is 0 everywhere. The way through the mean adds 0 in the end; the direct way does not.
    return dv[:, None] * direct -> return np.zeros_like(x)
[no-n] The 1/n of the mean is missing.
    / x.shape[1] ->
[no-two] The 2 of the square is missing.
    direct = 2 * -> direct =
You add a term for the mean, and it comes to a factor (1 - 1/n) or (1 + 1/n). Sum it over all entries: Σ (x - μ) is 0, so the way through the mean adds nothing.
    * direct -> * direct * (1 - 1 / x.shape[1]) || * direct * (1 + 1 / x.shape[1])
The mean has not been subtracted.
    (x - mean) -> x
The mean is subtracted twice. What comes through it is the sum of -2 (x - μ) / n over the row, and Σ (x - μ) is 0.
    (x - mean) -> (x - 2 * mean)
You take the mean of the whole array: each row has its own.
    x.mean(axis=1, keepdims=True) -> x.mean()
[over-columns] The mean is taken over the columns: the variance is that of a row.
    x.mean(axis=1, keepdims=True) -> x.mean(axis=0)
The mean of the rows has lost its axis: without keepdims=True, NumPy lines it up with the columns.
    x.mean(axis=1, keepdims=True) -> x.mean(axis=1)
What you subtract from x is n times too much. Is a 1/n missing in that term?
    x.mean( -> x.sum(
What you subtract from x is n times too little. Is there a 1/n too many in that term?
    (x - mean) -> (x - mean / x.shape[1])
[by-rows] You divide by the number of rows. The variance of a row is a mean over its n entries.
    / x.shape[1] -> / x.shape[0]
You divide by the number of all entries. The variance of a row is a mean over its n entries.
    / x.shape[1] -> / x.size
You multiply by n. The variance is a mean over the n entries of a row.
    / x.shape[1] -> * x.shape[1]
You divide by n twice: the mean of the squares has one 1/n.
    / x.shape[1] -> / x.shape[1] ** 2
You left dv out: multiply each row by the gradient of its variance.
    dv[:, None] * ->
dv (r,) lines up with the columns when it is multiplied by (r, n): give it a second axis, dv[:, None].
    dv[:, None] -> dv
You take one number from dv for all rows. Each row has a gradient of its own.
    dv[:, None] -> dv.sum() || dv.mean()
dv is a factor, and comes in once.
    dv[:, None] -> dv[:, None] ** 2
    dv[:, None] * -> dv[:, None] +
[sign] The sign is the wrong way round: an entry above the mean raises the variance when it grows.
    (x - mean) -> (mean - x)
The differences from the mean are still squared, or have lost their sign: the derivative of a square is twice what was squared.
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
    mean = x.mean(axis=1, keepdims=True)  #: the mean μ of each row, (r, 1)
    direct = 2 * (x - mean) / x.shape[1]  #: the direct derivative: the way through the mean adds 0
    return dv[:, None] * direct


# --- smallest_peak ---------------------------------------------------------------------------------------


def _peak_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for n in (12, 16, 24, 1, 2, 46, 50, 97, 100, 360, 4096, int(rng.choice([72, 90, 150, 200]))):
        yield f"{n} layer{'s' if n > 1 else ''}", n


@exercise(
    difficulty=2,
    minutes=15,
    cases=_peak_cases,
    hints="""
Take n = 12 and k = 4. What is kept when the forward pass has ended? What else is kept while the walk goes through the last stretch?

The n / k first inputs are kept, and k - 1 others of the stretch that the walk is in.

Try all k from 1 to n that divide n, and return the smallest n // k + k - 1.
""",
    mistakes="""
[first-input-twice] You count the first input of a stretch twice: it is among the n / k that are kept already.
    + k - 1 -> + k
You leave out one array too many. The first inputs are all kept, that of the current stretch among them, and its k - 1 others.
    + k - 1 -> + k - 2
The two numbers are kept at the same time: add them.
    n // k + k - 1 -> max(n // k, k) || max(n // k, k - 1)
[any-k] k has to divide n: the stretches are equally long. (2√n - 1 is right where √n is whole, and a little too small elsewhere.)
    if n % k == 0 ->
    if n % k == 0 -> ; n // k -> -(-n // k)
    if n % k == 0 -> ; n // k -> n / k
    return min(peaks) -> return 2 * n**0.5 - 1 || return 2 * math.isqrt(n) - 1 || return round(2 * n**0.5 - 1) || return math.ceil(2 * n**0.5) - 1 || return int(2 * n**0.5) - 1
That is the number of layers in a stretch. The number of arrays that are kept at the worst moment is asked for.
    min(peaks) -> min(zip(peaks, stretches))[1]
That is the square root of n, the best k for a square. The number of arrays is asked for.
    return min(peaks) -> return round(n**0.5) || return math.isqrt(n)
That is twice the square root of n. It is close for large squares; count the arrays for each k instead.
    return min(peaks) -> return round(2 * n**0.5)
That is n, what is kept when nothing is computed again, and the largest number over all k. Look for the smallest; and each stretch drops its arrays before the next one makes its own.
    return min(peaks) -> return n
    n // k + k - 1 -> n // k + n - 1 || n // k * k
    min(peaks) -> max(peaks)
That is half of n. It is right for 12 layers, and far too many for 10,000: stretches of two layers each are not the best.
    return min(peaks) -> return n // 2 || return n / 2 || return n // 2 + 1 || return (n + 1) // 2
""",
)
def smallest_peak(n):
    stretches = [k for k in range(1, n + 1) if n % k == 0]  #: the lengths k that divide n
    peaks = [n // k + k - 1 for k in stretches]  #: the number of arrays at the peak, for each k
    return min(peaks)
