"""Chapter 24: making it fast. These checks look at memory too: what was made on the way, and what was changed."""

from __future__ import annotations

import functools
import math
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.course.check.exercise import Case, Exercise, Misconception, _has_gap

__all__ = [
    "add_up",
    "from_which_length",
    "product_bound",
    "scores_without_copies",
    "softmax_gradient_into",
]

Observe = Callable[..., dict[str, Any]]


class _Observed:
    """A function of which `observe(function, *arguments)` tells the result, and what it did to memory."""

    def __init__(self, function: Callable[..., Any], observe: Observe) -> None:
        functools.update_wrapper(self, function)
        self.function, self.observe = function, observe
        self.__code__ = getattr(function, "__code__", None)

    def __call__(self, *arguments: Any) -> Any:
        """What was observed; an Ellipsis if the place for the answer is empty."""
        try:
            seen = self.observe(self.function, *arguments)
        except NotImplementedError:
            return ...
        if seen.pop("returned") is None and _has_gap(self.function):
            return ...
        return seen


@dataclass
class ObservedExercise(Exercise):
    """An exercise whose check also looks at what an answer does to memory.

    observe: calls the answer and returns what is compared, by name; under "returned", what came back.
    """

    observe: Observe = lambda function, *arguments: {"returned": function(*arguments)}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.answer = _Observed(self.answer, self.observe)
        self.misconceptions = [
            Misconception(one.message, _Observed(one.wrong, self.observe)) for one in self.misconceptions
        ]

    def judge(self, answer: Callable[..., Any]) -> bool:
        """Try `answer` under observation."""
        if callable(answer) and not isinstance(answer, _Observed):
            answer = _Observed(answer, self.observe)
        return super().judge(answer)


def _measured(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """What the function returns, and the most bytes that it had at one time beyond those at its start."""
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function(*arguments)
        return result, tracemalloc.get_traced_memory()[1] - before
    finally:
        if not running:
            tracemalloc.stop()


# --- product_bound ---------------------------------------------------------------------------------------


def _product_bound(n, k, m, peak, bandwidth):
    compute = 2 * n * k * m / peak
    memory = 4 * (n * k + k * m + n * m) / bandwidth
    return ("memory" if memory > compute else "compute"), max(compute, memory)


def _bound_cases(rng: np.random.Generator) -> Iterator[Case]:
    cpu, gpu = (200e9, 25e9), (495e12, 3.35e12)
    yield Case("a large product on a CPU", (2048, 768, 3072, *cpu))
    yield Case("scores of one head, 16 tokens, on the same CPU", (16, 64, 16, *cpu))
    yield Case("one row times a matrix", (1, 768, 768, *cpu))
    yield Case("the first one on a GPU", (2048, 768, 3072, *gpu))
    yield Case("scores of one head on a GPU", (64, 64, 64, *gpu))
    n, k, m = (int(size) for size in rng.integers(3, 200, 3))
    yield Case(f"a product of ({n}, {k}) and ({k}, {m})", (n, k, m, 1e10, 1e10))


def _bounded(
    flops=lambda n, k, m: 2 * n * k * m, moved=lambda n, k, m: 4 * (n * k + k * m + n * m), time=max
):
    def wrong(n, k, m, peak, bandwidth):
        compute, memory = flops(n, k, m) / peak, moved(n, k, m) / bandwidth
        return ("memory" if memory > compute else "compute"), time(compute, memory)

    return wrong


def _other_way_round(n, k, m, peak, bandwidth):
    bound, seconds = _product_bound(n, k, m, peak, bandwidth)
    return ("compute" if bound == "memory" else "memory"), seconds


def _without_the_machine(n, k, m, peak, bandwidth):
    flops, moved = 2 * n * k * m, 4 * (n * k + k * m + n * m)
    return ("memory" if moved > flops else "compute"), max(flops / peak, moved / bandwidth)


def _roofs_swapped(n, k, m, peak, bandwidth):
    return _product_bound(n, k, m, bandwidth, peak)


def _in_milliseconds(n, k, m, peak, bandwidth):
    bound, seconds = _product_bound(n, k, m, peak, bandwidth)
    return bound, 1000 * seconds


def _rates_for_times(n, k, m, peak, bandwidth):
    flops, moved = 2 * n * k * m, 4 * (n * k + k * m + n * m)
    rate = min(peak, bandwidth * flops / moved)
    return ("memory" if rate < peak else "compute"), rate


product_bound = Exercise(
    name="product_bound",
    chapter=24,
    difficulty=1,
    minutes=10,
    answer=_product_bound,
    cases=_bound_cases,
    misconceptions=[
        Misconception(
            "The factor 2 is missing: each of the n k m terms is a multiplication and an addition.",
            _bounded(flops=lambda n, k, m: n * k * m),
        ),
        Misconception(
            "You count numbers, not bytes: a float32 has four.",
            _bounded(moved=lambda n, k, m: n * k + k * m + n * m),
        ),
        Misconception(
            "You count eight bytes for a number: a float32 has four.",
            _bounded(moved=lambda n, k, m: 8 * (n * k + k * m + n * m)),
        ),
        Misconception(
            "The result must be written too: n m numbers more.",
            _bounded(moved=lambda n, k, m: 4 * (n * k + k * m)),
        ),
        Misconception(
            "You let each multiplication fetch its two numbers from memory. Each matrix need be read only once: that is "
            "what caches are for.",
            _bounded(moved=lambda n, k, m: 8 * n * k * m),
        ),
        Misconception(
            "You add the two times. They overlap: the processor computes while memory delivers, so the longer one counts.",
            _bounded(time=lambda a, b: a + b),
        ),
        Misconception(
            "You take the shorter of the two times: both limits hold, so it takes at least the longer one.",
            _bounded(time=min),
        ),
        Misconception(
            "The two words have changed places: the bound is what takes longer.",
            _other_way_round,
        ),
        Misconception(
            "You compare FLOPs with bytes. Which takes longer depends on the machine: compare the times.",
            _without_the_machine,
        ),
        Misconception(
            "The two rates have changed places: FLOPs go by the peak, bytes by the bandwidth.",
            _roofs_swapped,
        ),
        Misconception(
            "That is in milliseconds: the rates are per second.",
            _in_milliseconds,
        ),
        Misconception(
            "That is the rate below the roof, FLOPs per second: the FLOPs over it are the time.",
            _rates_for_times,
        ),
    ],
    hints=[
        "Two times: FLOPs over the peak, and bytes over the bandwidth.",
        "FLOPs: 2 n k m. Bytes: 4 for each entry of the two matrices and of the result.",
        'Return ("memory", seconds) if the second time is the longer, ("compute", seconds) if not; the longer one counts.',
    ],
)

# --- from_which_length -----------------------------------------------------------------------------------


def _from_which_length(d_k, peak, bandwidth):
    # FLOPs per byte, d_k L / (2 (2 d_k + L)), grow with L, and stay below d_k / 2. They must reach the ridge.
    ridge = peak / bandwidth
    if ridge >= d_k / 2:
        return math.inf
    return math.ceil(4 * d_k * ridge / (d_k - 2 * ridge))


def _length_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("d_k = 64, the CPU", (64, 200e9, 25e9))
    yield Case("d_k = 64, the H100 in float32", (64, 67e12, 3.35e12))
    yield Case("d_k = 64, the H100 in TF32", (64, 495e12, 3.35e12))
    yield Case("d_k = 40, the CPU", (40, 200e9, 25e9))
    yield Case("d_k = 64, 32 FLOPs for each byte", (64, 3200e9, 100e9))
    yield Case("d_k = 64, nearly 32 FLOPs for each byte", (64, 3187e9, 100e9))
    while True:
        d_k, bandwidth = int(rng.integers(24, 129)), 1e9 * int(rng.integers(20, 200))
        peak = 1e9 * round(rng.uniform(0.2, 0.45) * d_k * bandwidth / 1e9)
        exact = 4 * d_k * peak / (d_k * bandwidth - 2 * peak)
        if 0.05 < exact % 1 < 0.95:  # no matter of rounding
            break
    yield Case(
        f"d_k = {d_k}, {peak / 1e9:.0f} GFLOP/s and {bandwidth / 1e9:.0f} GB/s", (d_k, peak, bandwidth)
    )


def _length_from(flops=2, size=4, inputs=2, outputs=1, whole=math.ceil, none=math.inf):
    """Where `flops` d_k L² FLOPs take as long as their bytes, if so many matrices of that number size are moved."""

    def wrong(d_k, peak, bandwidth):
        ridge = peak / bandwidth
        slope = flops * d_k - size * outputs * ridge
        return whole(size * inputs * d_k * ridge / slope) if slope > 0 else none

    return wrong


def _wherever_the_formula_leads(d_k, peak, bandwidth):
    ridge = peak / bandwidth
    return math.ceil(4 * d_k * ridge / (d_k - 2 * ridge))


def _looked_for_up_to(limit):
    def wrong(d_k, peak, bandwidth):
        length = _from_which_length(d_k, peak, bandwidth)
        return length if length <= limit else math.inf

    return wrong


def _always_from_one(d_k, peak, bandwidth):
    return 1


def _heads_of_64(d_k, peak, bandwidth):
    return _from_which_length(64, peak, bandwidth)


from_which_length = Exercise(
    name="from_which_length",
    chapter=24,
    difficulty=2,
    minutes=12,
    answer=_from_which_length,
    cases=_length_cases,
    misconceptions=[
        Misconception(
            "A negative length, or a division by zero: FLOPs per byte grow with L, but not without limit. On some machines "
            "they never reach peak / bandwidth.",
            _wherever_the_formula_leads,
        ),
        Misconception(
            "You stop looking too early: on one of these machines there is such an L, far out. What do FLOPs per byte come "
            "to when L is very large?",
            _looked_for_up_to(4096),
        ),
        Misconception(
            "That is the last L that still waits for memory: the next one is asked for. (Rounding? Up.)",
            _length_from(whole=math.floor),
        ),
        Misconception(
            "A length is a whole number: round up to the first one that waits for arithmetic.",
            _length_from(whole=float),
        ),
        *(
            Misconception("Where there is no such L, return math.inf: every length lies below it.", wrong)
            for wrong in (_length_from(none=0), _length_from(none=-1), _length_from(none=math.nan))
        ),
        Misconception(
            "You find 1 on each machine, and with L = 1 there is a quarter of a FLOP for each byte. It waits for memory as "
            "long as FLOPs per byte are fewer than peak / bandwidth.",
            _always_from_one,
        ),
        Misconception(
            "The scores must be written too, L² numbers. They are why FLOPs per byte do not grow for ever.",
            _length_from(outputs=0),
        ),
        Misconception(
            "Two matrices are read, Q and K: 2 d_k L numbers.",
            _length_from(inputs=1),
        ),
        Misconception(
            "FLOPs per byte are twice what you take: each of the d_k L² terms is a multiplication and an addition, and a "
            "float32 has four bytes, not eight.",
            _length_from(flops=1),
        ),
        Misconception(
            "You count numbers, not bytes: a float32 has four.",
            _length_from(size=1),
        ),
        Misconception(
            "You took 64 for d_k: it is the first argument.",
            _heads_of_64,
        ),
    ],
    hints=[
        "How many FLOPs are there for each byte, written with L and d_k? Do they grow with L? To what, when L is very large?",
        "The product waits for memory while FLOPs per byte are below the ridge, peak / bandwidth. If the limit d_k / 2 is not "
        "above the ridge, that is for ever.",
        "d_k L / (2 (2 d_k + L)) = ridge: solve it for L, and round up.",
    ],
)

# --- softmax_gradient_into -------------------------------------------------------------------------------


def _softmax_gradient_into(dy, y, out):
    np.multiply(dy, y, out=out)
    along = out.sum(axis=-1, keepdims=True)  # (n, 1)
    np.subtract(dy, along, out=out)
    out *= y


def _observe_into(function, dy, y, out):
    """Whether only `out` was written to, and how much memory there was beside it at one time."""
    given = dy.copy(), y.copy()
    returned, most = _measured(function, dy, y, out)
    seen = {"out": out.copy(), "dy": "as it was", "y": "as it was", "memory on the way": "at most half of dy"}
    for name, array, before in zip(("dy", "y"), (dy, y), given, strict=True):
        if not np.array_equal(array, before):
            seen[name] = "overwritten"
            array[:] = before
    if most > 0.62 * dy.nbytes:  # half, and NumPy's own buffers
        seen["memory on the way"] = "more than half of dy"
    out[:] = np.nan  # as it was: it is there to be written to
    return {"returned": returned, **seen}


def _into_cases(rng: np.random.Generator) -> Iterator[Case]:
    # The square first: sums along the wrong axis fit there, so the numbers are off before a shape is. All are large:
    # NumPy's buffers, 64 KiB each, are little beside them.
    for (n, m), dtype in (
        ((700, 700), np.float32),
        ((400, 601), np.float64),
        ((90, 2503), np.float64),
    ):
        e = np.exp(rng.standard_normal((n, m)))
        y = (e / e.sum(axis=-1, keepdims=True)).astype(dtype)
        out = np.full((n, m), np.nan, dtype)
        name = f"shape {(n, m)} of {dtype.__name__}"
        yield Case(name, (rng.standard_normal((n, m)).astype(dtype), y, out))
    y = np.full((401, 600), 1 / 600)
    yield Case("a dy of ones (401, 600), which must give 0", (np.ones_like(y), y, np.full_like(y, np.nan)))


def _into(compute):
    def wrong(dy, y, out):
        out[:] = compute(dy, y)

    return wrong


def _rows_in_place(axis, keepdims=True):
    def wrong(dy, y, out):
        np.multiply(dy, y, out=out)
        along = out.sum(axis=axis, keepdims=keepdims)
        np.subtract(dy, along, out=out)
        out *= y

    return wrong


def _full_temporaries(dy, y, out):
    out[:] = y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def _one_full_temporary(dy, y, out):
    along = (dy * y).sum(axis=-1, keepdims=True)
    np.subtract(dy, along, out=out)
    out *= y


def _into_dy(dy, y, out):
    np.multiply(dy, y, out=out)
    dy -= out.sum(axis=-1, keepdims=True)
    np.multiply(dy, y, out=out)


def _into_y(dy, y, out):
    np.multiply(dy, y, out=out)
    along = out.sum(axis=-1, keepdims=True)
    np.subtract(dy, along, out=out)
    y *= out
    out[:] = y


def _out_too_early(dy, y, out):
    np.multiply(dy, y, out=out)
    out -= out.sum(axis=-1, keepdims=True)


def _out_too_early_times_y(dy, y, out):
    np.multiply(dy, y, out=out)
    out -= out.sum(axis=-1, keepdims=True)
    out *= y


def _without_y_in_the_sum(dy, y, out):
    np.subtract(dy, dy.sum(axis=-1, keepdims=True), out=out)
    out *= y


def _without_the_product(dy, y, out):
    np.multiply(dy, y, out=out)
    np.subtract(dy, out.sum(axis=-1, keepdims=True), out=out)


def _without_the_sum(dy, y, out):
    np.multiply(dy, y, out=out)


def _returned_instead(dy, y, out):
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def _name_bound_anew(dy, y, out):
    along = np.einsum("ij,ij->i", dy, y)[:, None]
    out = dy - along
    out *= y


def _mean_in_place(dy, y, out):
    np.multiply(dy, y, out=out)
    np.subtract(dy, out.mean(axis=-1, keepdims=True), out=out)
    out *= y


def _sign_in_place(dy, y, out):
    np.multiply(dy, y, out=out)
    np.subtract(out.sum(axis=-1, keepdims=True), dy, out=out)
    out *= y


softmax_gradient_into = ObservedExercise(
    name="softmax_gradient_into",
    chapter=24,
    difficulty=2,
    minutes=15,
    answer=_softmax_gradient_into,
    cases=_into_cases,
    observe=_observe_into,
    misconceptions=[
        Misconception(
            "The numbers are right, and on the way you hold more than half of dy's memory at one moment: dy * y, dy - … "
            "and the like each make a new array. np.multiply(dy, y, out=out) does not.",
            _full_temporaries,
        ),
        Misconception(
            "You wrote over dy. A residual sum hands the same dy to its other parent, who reads it after you.",
            _into_dy,
        ),
        Misconception(
            "You wrote over y. It is the output of the forward: whoever kept the weights finds something else there.",
            _into_y,
        ),
        Misconception(
            "You subtract the sum from dy times y, which stands in `out` by then: it is subtracted from dy itself.",
            _out_too_early,
        ),
        Misconception(
            "`out` held dy times y when you went on with it: subtract the sum from dy, into `out`, then multiply by y.",
            _out_too_early_times_y,
        ),
        Misconception(
            "You sum dy over the row: the sum is of dy times y.",
            _without_y_in_the_sum,
        ),
        Misconception(
            "The factor y at the end is missing.",
            _without_the_product,
        ),
        Misconception(
            "That is dy times y alone: what all scores of the row have in common, Σ dy y, must be taken out first.",
            _without_the_sum,
        ),
        Misconception(
            "You sum over the columns: each row has a softmax of its own.",
            _rows_in_place(axis=0),
        ),
        *(
            Misconception(
                "A row of n sums is stretched along the wrong axis: keepdims=True keeps them below each other, (n, 1).",
                wrong,
            )
            for wrong in (
                _rows_in_place(axis=-1, keepdims=False),
                _into(lambda dy, y: y * (dy - (dy * y).sum(axis=-1))),
            )
        ),
        Misconception(
            "You sum over the whole array: each row has a softmax of its own.",
            _rows_in_place(axis=None),
        ),
        Misconception(
            "That is the mean of dy times y: the shares y sum to 1 already, so the weighted mean is the sum.",
            _mean_in_place,
        ),
        Misconception(
            "The sign is turned round: dy minus the sum.",
            _sign_in_place,
        ),
        Misconception(
            "Nothing was written to `out`. `out = …` gives the name to another array, and a returned array is a new one: "
            "out[:] = …, out *= … and out=out write to the one you were given.",
            _returned_instead,
        ),
    ],
    hints=[
        "Write the formula y (dy - Σ dy y) as three operators. Which of their results can `out` hold, one after the other?",
        "np.multiply(dy, y, out=out) first: then out.sum(axis=-1, keepdims=True) is the row's sum, and `out` is free again.",
        "np.subtract(dy, along, out=out), then out *= y.",
    ],
)

# --- scores_without_copies -------------------------------------------------------------------------------


def _split(x, h):
    B, L, d_model = x.shape
    return x.reshape(B, L, h, d_model // h).transpose(0, 2, 1, 3)  # (B, h, L, d_k), a view


def _scores_without_copies(q, k, h):
    scores = _split(q, h) @ _split(k, h).swapaxes(-1, -2)  # (B, h, L, L)
    scores *= 1 / math.sqrt(q.shape[-1] // h)
    return scores


def _observe_scores(function, q, k, h):
    """How much memory there was at one time, in results, and whether q and k are as they were."""
    given = q.copy(), k.copy()
    returned, most = _measured(function, q, k, h)
    extra = most / returned.nbytes - 1 if isinstance(returned, np.ndarray) and returned.size else 0
    seen = {
        "returned": returned,
        "scores": returned,
        "memory beside the result": "none",
        "q and k": "as they were",
    }
    if extra > 0.6:
        seen["memory beside the result"] = f"{extra:.1f} times that of the result"
    if not (np.array_equal(q, given[0]) and np.array_equal(k, given[1])):
        seen["q and k"] = "changed"
        q[:], k[:] = given
    return seen


def _scores_cases(rng: np.random.Generator) -> Iterator[Case]:
    # q and k are three times as large as the scores: L = d_k / 3
    for B, L, h, d_k, dtype in (
        (3, 40, 3, 120, np.float64),
        (5, 50, 2, 150, np.float32),
        (6, 48, 2, 144, np.float64),
    ):
        q, k = rng.standard_normal((2, B, L, h * d_k)).astype(dtype)
        yield Case(f"B = {B}, L = {L}, {h} heads of {d_k}, {dtype.__name__}", (q, k, h))


def _one_copy(which):
    def wrong(q, k, h):
        q, k = _split(q, h), _split(k, h)
        if which == "q":
            q = q.copy()
        else:
            k = k.copy()
        scores = q @ k.swapaxes(-1, -2)
        scores *= 1 / math.sqrt(q.shape[-1])
        return scores

    return wrong


def _both_copies(q, k, h):
    q, k = _split(q, h).copy(), _split(k, h).copy()
    scores = q @ k.swapaxes(-1, -2)
    scores *= 1 / math.sqrt(q.shape[-1])
    return scores


def _new_array_for_the_scale(q, k, h):
    return _split(q, h) @ _split(k, h).swapaxes(-1, -2) / math.sqrt(q.shape[-1] // h)


def _all_copies(q, k, h):
    q, k = _split(q, h).copy(), _split(k, h).copy()
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])


def _scaled_in_place(q, k, h):
    q *= 1 / math.sqrt(q.shape[-1] // h)
    return _split(q, h) @ _split(k, h).swapaxes(-1, -2)


def _scores_with(split, divisor=lambda q, h: math.sqrt(q.shape[-1] // h)):
    def wrong(q, k, h):
        scores = split(q, h) @ split(k, h).swapaxes(-1, -2)
        scores *= 1 / divisor(q, h)
        return scores

    return wrong


def _reshaped_only(x, h):
    B, L, d_model = x.shape
    return x.reshape(B, h, L, d_model // h)


def _interleaved(x, h):
    B, L, d_model = x.shape
    return x.reshape(B, L, d_model // h, h).transpose(0, 3, 1, 2)


def _keys_ask(q, k, h):
    scores = _split(k, h) @ _split(q, h).swapaxes(-1, -2)
    scores *= 1 / math.sqrt(q.shape[-1] // h)
    return scores


scores_without_copies = ObservedExercise(
    name="scores_without_copies",
    chapter=24,
    difficulty=2,
    minutes=12,
    answer=_scores_without_copies,
    cases=_scores_cases,
    observe=_observe_scores,
    misconceptions=[
        Misconception(
            "There is still a copy of q or of k, or a scaled one. `@` takes the transposed view as it is: the BLAS is told "
            "how far apart the rows lie.",
            _one_copy("q"),
        ),
        Misconception(
            "Both q and k are there a second time: copied or scaled by you, or inside a call such as a reshape of a "
            "transposed view or np.einsum(…, optimize=True). `@` takes the transposed views as they are: the BLAS is told "
            "how far apart the rows lie.",
            _both_copies,
        ),
        Misconception(
            "Nothing is saved yet: q and k are there a second time, and then the scores too. Look for what copies, line by "
            "line.",
            _all_copies,
        ),
        Misconception(
            "The scores are there twice at one moment. `scores / …` makes a new array, and so does np.stack or np.array of "
            "the heads' scores. Have one array: write to it and scale it in place.",
            _new_array_for_the_scale,
        ),
        Misconception(
            "You scale q in place, and the caller still needs it: a gradient will be computed from it. The scores are the "
            "array that you have made yourself.",
            _scaled_in_place,
        ),
        Misconception(
            "A reshape to (B, h, L, d_k) is no copy, and not the heads either: it keeps the reading order, and mixes tokens "
            "and heads (chapter 1). Reshape to (B, L, h, d_k), then transpose.",
            _scores_with(_reshaped_only),
        ),
        Misconception(
            "You deal the features out to the heads in turn. Head i has the features i d_k, …, (i + 1) d_k - 1 of each "
            "token, next to each other.",
            _scores_with(_interleaved),
        ),
        Misconception(
            "The scale is missing.",
            _scores_with(_split, lambda q, h: 1.0),
        ),
        Misconception(
            "The scale is the root of a head's length, d_k = d_model / h, not of d_model.",
            _scores_with(_split, lambda q, h: math.sqrt(q.shape[-1])),
        ),
        Misconception(
            "That is d_k; the scale is its root.",
            _scores_with(_split, lambda q, h: q.shape[-1] // h),
        ),
        Misconception(
            "You compare keys with queries: a row belongs to a query.",
            _keys_ask,
        ),
    ],
    hints=[
        "Three lines of the slow version make an array that nobody needs. Which of its calls copy: reshape, transpose, copy, /?",
        "A transpose is a view, and `@` takes views. And whose array are the scores: who else holds it?",
        "scores = q @ k.swapaxes(-1, -2), with the views; then scores *= 1 / math.sqrt(d_k).",
    ],
)

# --- add_up ----------------------------------------------------------------------------------------------


def _add_up(contributions):
    total = contributions[0]
    if len(contributions) > 1:
        total = total + contributions[1]  # an array of our own
        for one in contributions[2:]:
            total += one
    return total


def _what_became(given, members):
    """Of the list that was given: whether it still has the same members in the same places."""
    if len(given) != len(members):
        return "shorter" if len(given) < len(members) else "longer"
    same = all(one is other for one, other in zip(given, members, strict=True))
    return "as it was" if same else "other arrays in its places"


def _observe_sum(function, kind, arrays):
    """What came out for contributions that share memory in this way, and what it cost."""
    first = arrays[0]
    second, third = (*arrays[1:], first, first)[:2]
    contributions = {
        "one alone": [first],
        "one": [first, first],
        "a view": [first, first[::-1], second],
        "different": list(arrays),
        "stretched": [np.broadcast_to(first[:1], first.shape), second, third],
        "last twice": [second, third, first, first],
    }[kind]
    before, members = [array.copy() for array in arrays], list(contributions)
    returned, most = _measured(function, contributions)
    is_array = isinstance(returned, np.ndarray)
    shared = is_array and any(np.shares_memory(returned, array) for array in arrays)
    seen = {
        "returned": returned,
        "sum": returned.copy() if is_array else returned,
        "the contributions": "as they were",
        "the list": _what_became(contributions, members),
        "new arrays at one time": int(most / first.nbytes + 0.1),  # whole ones: NumPy's buffers do not count
        "memory shared with a contribution": shared,
    }
    if any(not np.array_equal(array, old) for array, old in zip(arrays, before, strict=True)):
        seen["the contributions"] = "changed"
        for array, old in zip(arrays, before, strict=True):
            array[:] = old
    return seen


def _sum_cases(rng: np.random.Generator) -> Iterator[Case]:
    # Below 256 KiB: of a larger result that has no name NumPy may take the memory again, and sum() looks harmless.
    def draw(n: int, dtype: type = np.float64) -> list[np.ndarray]:
        return [rng.standard_normal((160, 201)).astype(dtype) for _ in range(n)]

    yield Case("two different gradients", ("different", draw(2)))
    yield Case("a + a: the same array twice", ("one", draw(1)))
    yield Case("a gradient, a view of it, and another", ("a view", draw(2)))
    yield Case("five in float32", ("different", draw(5, np.float32)))
    yield Case("a row stretched by broadcasting, and two others", ("stretched", draw(3)))
    yield Case("the same array twice at the end", ("last twice", draw(3)))
    yield Case("one gradient alone", ("one alone", draw(1)))


def _into_the_first(contributions):
    total = contributions[0]
    for one in contributions[1:]:
        total += one
    return total


def _into_the_first_if_it_can(contributions):
    total = contributions[0] if contributions[0].flags.writeable else contributions[0].copy()
    for one in contributions[1:]:
        total += one
    return total


def _into_the_last(contributions):
    total = contributions[-1]
    for one in contributions[:-1]:
        total += one
    return total


def _always_new(contributions):
    total = contributions[0]
    for one in contributions[1:]:
        total = total + one
    return total


def _pythons_sum(contributions):
    return sum(contributions)


def _pythons_sum_of_several(contributions):
    return contributions[0] if len(contributions) == 1 else sum(contributions)


def _new_each_time_from_zeros(contributions):
    total = np.zeros_like(contributions[0])
    for one in contributions:
        total = total + one
    return total


def _taken_out(contributions):
    total = contributions.pop(0)
    if contributions:
        total = total + contributions.pop(0)
    while contributions:
        total += contributions.pop()
    return total


def _taken_out_of_several(contributions):
    return contributions[0] if len(contributions) == 1 else _taken_out(contributions)


def _two_taken_out_at_once(contributions):
    total = contributions.pop(0) + contributions.pop(0)
    while contributions:
        total += contributions.pop()
    return total


def _stacked(contributions):
    return contributions[0] if len(contributions) == 1 else np.stack(contributions).sum(axis=0)


def _stacked_always(contributions):
    return np.stack(contributions).sum(axis=0)


def _copied_when_alone(contributions):
    total = contributions[0].copy()
    for one in contributions[1:]:
        total += one
    return total


def _each_once(contributions):
    different = {id(one): one for one in contributions}
    return _add_up(list(different.values()))


def _last_one_wins(contributions):
    return contributions[-1]


def _mean_of_them(contributions):
    if len(contributions) == 1:
        return contributions[0]
    total = _add_up(contributions)
    total /= len(contributions)
    return total


add_up = ObservedExercise(
    name="add_up",
    chapter=24,
    difficulty=2,
    minutes=15,
    answer=_add_up,
    cases=_sum_cases,
    observe=_observe_sum,
    misconceptions=[
        Misconception(
            "You add into the first array, which is borrowed: in a + a it is the second one too, and in a residual sum "
            "somebody else reads it later. (And one stretched by broadcasting cannot be written to.)",
            _into_the_first,
        ),
        Misconception(
            "You add into the first array whenever it can be written to. That it can does not make it yours: the caller, "
            "or another parent, still holds it.",
            _into_the_first_if_it_can,
        ),
        Misconception(
            "You add into the last array, which is borrowed like all of them.",
            _into_the_last,
        ),
        Misconception(
            "total = total + one makes a new array each time. After the first sum the array is yours: go on with +=.",
            _always_new,
        ),
        *(
            Misconception(
                "You take the arrays out of the caller's list: pop changes it for everybody who holds it. Go through the "
                "list with a loop, and leave it whole.",
                wrong,
            )
            for wrong in (_taken_out, _taken_out_of_several, _two_taken_out_at_once)
        ),
        *(
            Misconception(
                "Your sum starts from 0, as sum() does: so even the first addition makes an array, and each later one "
                "another. Start from what there is.",
                wrong,
            )
            for wrong in (_pythons_sum, _pythons_sum_of_several, _new_each_time_from_zeros)
        ),
        *(
            Misconception(
                "np.stack, np.array and np.sum of a list copy all of them into one large array first. One new array is "
                "enough.",
                wrong,
            )
            for wrong in (_stacked, _stacked_always)
        ),
        Misconception(
            "One gradient alone needs no copy: hand it on as it is. Most nodes of a graph have a single contribution.",
            _copied_when_alone,
        ),
        Misconception(
            "The same array twice counts twice: the gradient of a + a is 2 dy.",
            _each_once,
        ),
        Misconception(
            "The last one wins: contributions of several paths add up (chapter 2).",
            _last_one_wins,
        ),
        Misconception(
            "That is their mean: contributions of several paths add up (chapter 2).",
            _mean_of_them,
        ),
    ],
    hints=[
        "Which array may be written to? One that you made yourself. When do you have the first such array?",
        "The first contribution is borrowed, the second addition makes a new array, all later ones go into it.",
        "total = a[0] + a[1], then total += one for the rest; with a single contribution, return it.",
    ],
)
