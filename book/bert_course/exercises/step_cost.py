"""Chapter `step_cost`: what a step costs. How long a product takes at least, what a change can save, how many passes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.outcome import Probe
from bert_course.common.passes import Counted

# --- product_bound ---------------------------------------------------------------------------------------

CPU = (200e9, 25e9)  # FLOPs and bytes per second
GPU = (495e12, 3.35e12)


def _bound_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "a large product on a CPU", 2048, 768, 3072, *CPU
    yield "scores of one head, 16 tokens, on the same CPU", 16, 64, 16, *CPU
    yield "one row times a matrix", 1, 768, 512, *CPU
    yield "the same on a processor that computes slowly", 1, 768, 512, 1e10, 1e11
    yield "an outer product of 8 columns with 8 rows", 1024, 8, 1024, *CPU
    yield "the first one on a GPU", 2048, 768, 3072, *GPU
    yield "a square one on a GPU", 64, 64, 64, *GPU
    n, k, m = (int(size) for size in 3 + rng.permutation(190)[:3])
    yield f"({n}, {k}) times ({k}, {m}) with a slow memory", n, k, m, 1e15, 1e10
    yield f"({n}, {k}) times ({k}, {m}) with a fast memory", n, k, m, 1e10, 1e13


@exercise(
    difficulty=1,
    minutes=10,
    cases=_bound_cases,
    atol=0,
    hints="""
Two times: FLOPs over the peak, and bytes over the bandwidth.

FLOPs: 2 n k m. Bytes: 4 for each entry of the two matrices and of the result.

Return ("memory", seconds) if the second time is the longer, ("compute", seconds) if not; the longer one counts.
""",
    mistakes="""
The factor 2 is missing: each of the n k m terms is a multiplication and an addition.
    2 * n * k * m -> n * k * m
You count 2 k - 1 FLOPs for an entry of the result. The usual count, 2 n k m, includes the first addition, to 0.
    2 * n * k * m -> (2 * k - 1) * n * m
Each of the n m entries of the result is a sum of k products: your FLOPs do not grow with all three sizes.
    2 * n * k * m -> 2 * n * m || 2 * n * k
n, k and m differ here: a rule for a square product does not hold.
    2 * n * k * m -> 2 * n**3
    memory > compute -> n / 6 < peak / bandwidth ; max(compute, memory) -> memory if bound == "memory" else compute
    memory > compute -> n / 6 < peak / bandwidth
You count numbers, not bytes: a float32 has four.
    4 * ( -> 1 * (
[other-bytes] Each number is moved once, and a float32 has four bytes: you count more for each, or fewer (eight are for float64, and bits are not bytes).
    4 * ( -> 8 * ( || 2 * ( || 32 * (
[result-not-written] The result must be written too: another n m numbers.
    + n * m) -> )
Both matrices must be read: n k numbers of the first, k m of the second.
    n * k + k * m + n * m -> n * k + n * m || k * m + n * m || n * m
The result has n m numbers, and each of them is written once.
    + n * m) -> + 2 * n * m)
    k * m + n * m -> k * m + k * k || k * m + n * k
A matrix of n rows and k columns has n k numbers, not n + k: your bytes are sums of sizes.
    n * k + k * m + n * m -> n + k + m || n + k + k + m + n + m
You let each multiplication fetch its numbers from memory. Each matrix need be read only once: that is what caches are for.
    4 * (n * k + k * m + n * m) -> 8 * n * k * m || 4 * (2 * n * k * m + n * m) || 12 * n * k * m || 4 * n * k * m
You add the two times. They overlap: the processor computes while memory delivers, so the longer one counts.
    max(compute, memory) -> compute + memory
You take the shorter of the two times: both limits hold, so it takes at least the longer one.
    max(compute, memory) -> min(compute, memory)
    memory > compute -> memory < compute ; max( -> min(
The two words have changed places: the bound is what takes longer.
    memory > compute -> memory < compute
You give a product the same word on every machine. Compare its two times, or its FLOPs per byte with this machine's peak / bandwidth.
    memory > compute -> moved > flops || 9 * moved > flops
    memory > compute -> moved > flops ; max(compute, memory) -> memory if bound == "memory" else compute
    memory > compute -> 9 * moved > flops ; max(compute, memory) -> memory if bound == "memory" else compute
    memory > compute -> False ; max(compute, memory) -> compute
    memory > compute -> True ; max(compute, memory) -> memory
You compare with bandwidth / peak. FLOPs per byte are to be compared with the FLOPs that the machine does while it moves a byte, peak / bandwidth.
    memory > compute -> flops / moved < bandwidth / peak ; max(compute, memory) -> memory if bound == "memory" else compute
    memory > compute -> flops / moved < bandwidth / peak
The two rates have changed places: FLOPs go by the peak, bytes by the bandwidth.
    flops / peak -> flops / bandwidth ; moved / bandwidth -> moved / peak
Your seconds are those of one limit on every machine: the longer of the two times counts.
    max(compute, memory) -> compute || memory
[other-units] Your times are not in seconds: the rates are FLOPs and bytes per second, without milli, micro or giga.
    seconds = -> seconds = 1e3 * || seconds = 1e6 * || seconds = 1e9 * || seconds = 1e-9 * || seconds = 1e-12 *
That is the rate below the roof, FLOPs per second: divide the FLOPs by it to get the time.
    max(compute, memory) -> flops / max(compute, memory)
Your second value is not a time. Work over rate is a time; rate over work is not, and neither are FLOPs per byte.
    max(compute, memory) -> 1 / max(compute, memory) || flops / moved
You round the seconds: the times here are small parts of one, and // and int() leave nothing of them.
    max(compute, memory) -> max(compute, memory) // 1 || round(max(compute, memory), 6) || round(max(compute, memory), 9)
    flops / peak -> flops // peak ; moved / bandwidth -> moved // bandwidth
    flops / peak -> flops // peak ; moved / bandwidth -> moved // bandwidth ; memory > compute -> memory >= compute
[other-order] The word comes first, then the seconds.
    return bound, seconds -> return seconds, bound
[one-value] Two values are asked for: the word for the longer time, and that time.
    return bound, seconds -> return compute, memory || return memory, compute || return {"compute": compute, "memory": memory} || return bound
    return bound, seconds -> return seconds
The words are spelt "memory" and "compute".
    "compute" -> "arithmetic"
    "compute" -> "Compute" ; "memory" -> "Memory"
    return bound -> return memory > compute || return memory <= compute
""",
)
def product_bound(n, k, m, peak, bandwidth):
    flops = 2 * n * k * m  #: the FLOPs: a multiplication and an addition for each term
    moved = 4 * (n * k + k * m + n * m)  #: the bytes that are moved, four for each number
    compute = flops / peak  #: the seconds that the FLOPs take at the peak
    memory = moved / bandwidth  #: the seconds that the bytes take at the bandwidth
    bound = "memory" if memory > compute else "compute"  #: the word for what the product waits for
    seconds = max(compute, memory)  #: the longer of the two times
    return bound, seconds


# --- from_which_length -----------------------------------------------------------------------------------


def _length_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "d_k = 64, the CPU", 64, 200e9, 25e9
    yield "d_k = 64, the H100 in float32", 64, 67e12, 3.35e12
    yield "d_k = 41, the CPU", 41, 200e9, 25e9
    while True:
        d_k, bandwidth = int(rng.integers(24, 129)), 1e9 * int(rng.integers(20, 200))
        peak = 1e9 * round(rng.uniform(0.2, 0.3) * d_k * bandwidth / 1e9)
        exact = 4 * d_k * peak / (d_k * bandwidth - 2 * peak)
        if 0.05 < exact % 1 < 0.45:  # no matter of the last digits; and the nearest whole number is too small
            break
    yield f"d_k = {d_k}, {peak / 1e9:.0f} GFLOP/s and {bandwidth / 1e9:.0f} GB/s", d_k, peak, bandwidth
    yield "d_k = 512, 100 FLOPs in the time of each byte", 512, 10e12, 100e9
    yield "d_k = 64, 1 FLOP in the time of each byte", 64, 20e9, 20e9
    yield "d_k = 64, 31.87 FLOPs in the time of each byte", 64, 3187e9, 100e9
    yield "d_k = 64, 31.996 FLOPs in the time of each byte", 64, 3199.59e9, 100e9
    yield "d_k = 64, 32 FLOPs in the time of each byte", 64, 3200e9, 100e9
    yield "d_k = 64, 40 FLOPs in the time of each byte", 64, 4000e9, 100e9
    yield "d_k = 64, the H100 in TF32", 64, *GPU


@exercise(
    difficulty=2,
    minutes=12,
    cases=_length_cases,
    hints="""
How many FLOPs are there for each byte, written with L and d_k? Do they grow with L? To what, when L is very large?

The product waits for memory while FLOPs per byte are below the ridge, peak / bandwidth. If the limit d_k / 2 is not above
the ridge, that is for ever.

d_k L / (2 (2 d_k + L)) = ridge: solve it for L, and round up.
""",
    mistakes="""
You return a negative length, or divide by zero: FLOPs per byte grow with L, but not without limit. On some machines they never reach peak / bandwidth.
    gain <= 0 -> False || gain < 0 || gain == 0 || d_k <= peak / bandwidth || 2 * d_k <= peak / bandwidth
There is such an L on more machines than you think: FLOPs per byte come near to d_k / 2 when L is large.
    gain <= 0 -> d_k / 4 <= peak / bandwidth
    return math.inf
You stop looking too early: on one of these machines there is such an L, far out. What do FLOPs per byte come to when L is very large?
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 100 * gain || gain <= 0 or inputs / bandwidth > 128 * gain
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 200 * gain || gain <= 0 or inputs / bandwidth > 256 * gain
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 512 * gain || gain <= 0 or inputs / bandwidth > 4096 * gain
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 1e5 * gain
Your search ends at a limit of its own, and you return the limit. On one of these machines such an L lies far out, on others there is none. FLOPs per byte at a very large L show which of the two it is.
    return min(right(d_k, peak, bandwidth), 10**5)

    return min(right(d_k, peak, bandwidth), 10**4)

    return min(right(d_k, peak, bandwidth), 10**6)
[last-that-waits] On some machines that is the last L that still waits for memory: the next one is asked for, so round up.
    math.ceil(least) -> math.floor(least) || math.ceil(least) - 1 || round(least)
A length is a whole number: round up to the first one that waits for arithmetic.
    math.ceil(least) -> least
On some machines a smaller L waits for arithmetic already: every length counts, from 1 on and in steps of 1.
    math.ceil(least) -> math.ceil(least) + 1 || max(d_k, math.ceil(least)) || 2 ** math.ceil(math.log2(least)) || 8 * math.ceil(least / 8)
    math.ceil(least) -> 10 * math.ceil(least / 10) || 16 * math.ceil(least / 16) || 64 * math.ceil(least / 64) || 100 * math.ceil(least / 100)
[no-such-length] Where there is no such L, return math.inf: every length lies below it.
    return math.inf -> return 0 || return -1 || return math.nan || return None || return "inf"
You find L = 1, where there is a quarter of a FLOP for each byte. The scores wait for memory as long as FLOPs per byte are fewer than peak / bandwidth.
    return 1

    return 1 if d_k > 2 * peak / bandwidth else math.inf
You compare with bandwidth / peak. FLOPs per byte are to be compared with the FLOPs that the machine does while it moves a byte.
    flops / peak - output / bandwidth -> flops / bandwidth - output / peak ; inputs / bandwidth -> inputs / peak
The scores must be written too, L² numbers. They are why FLOPs per byte do not grow for ever.
    output = 4 -> output = 0
The result of (L, d_k) times (d_k, L) has L² numbers.
    inputs = 4 * 2 * d_k -> inputs = 4 * (2 * d_k + 1) ; output = 4 -> output = 0

    ridge = peak / bandwidth
    return math.ceil(2 * ridge + math.sqrt(4 * ridge**2 + 2 * ridge * d_k))
You take (d_k, L) times (L, d_k), which sums over the tokens. The scores have a sum over d_k for each pair of tokens.
    gain = flops / peak - output / bandwidth -> gain = flops * d_k / peak - inputs / bandwidth ; inputs / bandwidth / gain -> 4 * d_k**2 / bandwidth / gain
[one-matrix] Two matrices are read, Q and K: 2 d_k L numbers.
    inputs = 4 * 2 * d_k -> inputs = 4 * d_k
[half-the-work] FLOPs per byte are twice what you take: each of the d_k L² terms is a multiplication and an addition, and a float32 has four bytes, not eight.
    flops = 2 * d_k -> flops = d_k
    inputs = 4 * -> inputs = 8 * ; output = 4 -> output = 8
FLOPs per byte are half of what you take: a float32 has four bytes, and a term is one multiplication and one addition.
    inputs = 4 * -> inputs = 2 * ; output = 4 -> output = 2
A float32 has four bytes, and the bandwidth is in bytes. You count numbers, or bits.
    inputs = 4 * 2 * d_k -> inputs = 2 * d_k ; output = 4 -> output = 1
    inputs = 4 * -> inputs = 32 * ; output = 4 -> output = 32
You took 64 for d_k, which is the first argument.
    2 * d_k -> 2 * 64
The rule for a square product, L / 6 FLOPs per byte, holds for L = d_k only: here L grows and d_k does not.
    return math.ceil(6 * peak / bandwidth)

    return math.ceil(6 * peak / bandwidth) if d_k > 2 * peak / bandwidth else math.inf
That is peak / bandwidth itself, which also comes out if numbers are counted as bytes and the L² scores are left out. The L at which the scores' FLOPs per byte reach it is asked for.
    return math.ceil(peak / bandwidth)

    return peak / bandwidth
d_k / 2 is what FLOPs per byte approach when L is very large. The L at which they reach peak / bandwidth is asked for.
    math.ceil(least) -> d_k / 2
""",
)
def from_which_length(d_k, peak, bandwidth):
    flops = 2 * d_k  #: the FLOPs for each of the L² scores
    inputs = 4 * 2 * d_k  #: the bytes of Q and K for each token
    output = 4  #: the bytes for each of the L² scores
    # Arithmetic takes flops L² / peak, memory (inputs L + output L²) / bandwidth. Both are divided by L² here.
    gain = flops / peak - output / bandwidth  #: a score's arithmetic time minus its writing time
    if gain <= 0:  # then memory takes longer, however large L is
        return math.inf
    least = inputs / bandwidth / gain  #: the L, not rounded, at which both times are equal
    return math.ceil(least)


# --- worth_trying ----------------------------------------------------------------------------------------


def _profile_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    profile = {"linear": 20.0, "gelu": 2.5, "layer_norm": 3.0, "AdamW": 2.0, "add": 0.5, "the rest": 12.0}
    changes = {
        "gelu without an exponential": ("gelu", 1.5),
        "products on a faster BLAS": ("linear", 1.3),
        "no LayerNorm at all": ("layer_norm", math.inf),
        "AdamW ten times as fast": ("AdamW", 10.0),
    }
    yield "a profile and four changes", profile, changes, 0.05
    yield "the same, and all that save more than 2 %", profile, changes, 0.02
    yield "the same, and all that save more than half", profile, changes, 0.5
    yield (
        "an operation with half of the time, slightly faster",
        {"a": 5.0, "b": 5.0},
        {"a": ("a", 1.05)},
        0.03,
    )
    # 10 ms of 100 saved: 10 % of the step, and the new step would be 11 % faster
    yield ("a tenth saved, and more than 10.5 % asked for", {"a": 20.0, "b": 80.0}, {"a": ("a", 2.0)}, 0.105)
    yield (
        "three changes that save the same",
        {"a": 4.0, "b": 8.0, "c": 4.0},
        {"y": ("a", 2.0), "z": ("c", 2.0), "b": ("b", math.inf), "x": ("a", 2.0)},
        0.1,
    )
    ops = [f"op {i}" for i in range(6)]
    times = rng.uniform(1, 10, 6)
    yield (
        "six operations, each four times as fast",
        dict(zip(ops, (float(t) for t in times), strict=True)),
        {f"faster {op}": (op, 4.0) for op in ops},
        0.1,
    )
    yield (
        "exactly half saved, and more than half asked for",
        {"a": 5.0, "b": 5.0},
        {"a": ("a", math.inf)},
        0.5,
    )
    tiny = {"a": 0.03, "b": 0.01, "c": 0.02}
    yield "hundredths of a millisecond", tiny, {"b": ("b", 3.0), "a": ("a", 1.8), "c": ("c", 1.05)}, 0.05


def _in_order(_: None, returned: Any, arguments: Mapping[str, Any]) -> None:
    """Of changes that save the same, any may come first. Raises ValueError for what is not right, which is told as it is."""
    profile, changes = arguments["profile"], arguments["changes"]
    saved = [profile[op] * (1 - 1 / times) for op, times in map(changes.__getitem__, returned)]
    if set(returned) != set(worth_trying.answer(**arguments)) or saved != sorted(saved, reverse=True):
        raise ValueError(returned)


@exercise(
    difficulty=2,
    minutes=12,
    cases=_profile_cases,
    probes=(Probe(lambda arguments: None, _in_order, decides=True),),
    hints="""
An operation takes t milliseconds. It becomes 3 times as fast. How many milliseconds are saved?

t - t / 3 of the whole step, which is the sum of the profile. For math.inf times as fast, t / math.inf is 0.

saved = {name: profile[op] * (1 - 1 / times) / total for name, (op, times) in changes.items()}; then keep those above
`least`, and sort by what they save.
""",
    mistakes="""
You take an operation's whole share, as if it cost nothing after the change. An operation that becomes twice as fast saves half of its time.
    1 - 1 / times -> 1
That is what is left of the operation after the change: what is saved is the rest, 1 - 1 / times of it.
    1 - 1 / times -> 1 / times
An operation cannot save more than it takes: `times` faster leaves 1 / times of it.
    1 - 1 / times -> times || times - 1
You keep what saves exactly `least`, too. More than that is asked for.
    > least -> >= least
You compare milliseconds with a share: divide by the milliseconds of the whole step.
    / total ->
You divide by the operation's own time, so each change is judged as if nothing else took time. The share is of the whole step.
    profile[op] * (1 - 1 / times) / total -> 1 - 1 / times
The whole step is all of the profile, including the operations that no change touches.
    sum(profile.values()) -> sum(profile[op] for op, _ in changes.values())
You divide by the time after the change, which says how much faster the step becomes. What is saved is a share of the step as it is.
    / total -> / (total - profile[op] * (1 - 1 / times))
The largest saving comes first.
    reverse=True -> reverse=False
    key=saved.__getitem__, reverse=True -> reverse=True
    key=saved.__getitem__, reverse=True -> key=lambda name: profile[changes[name][0]], reverse=True
    key=saved.__getitem__, reverse=True -> key=lambda name: changes[name][1], reverse=True
You leave the changes in their order: the largest saving comes first.
    return sorted(worth, key=saved.__getitem__, reverse=True) -> return worth
Those that save more than `least` are asked for; yours save less.
    saved[name] > least -> saved[name] < least
You return all changes: return only those that save more than `least`.
    saved[name] > least -> True
Of changes that save the same you keep one alone, as the savings are the keys of your dictionary. Each name has its own saving.
    return sorted(worth, key=saved.__getitem__, reverse=True) -> return list({saved[name]: name for name in sorted(worth, key=saved.__getitem__, reverse=True)}.values())
    return sorted(worth, key=saved.__getitem__, reverse=True) -> return list({saved[name]: name for name in sorted(worth, key=saved.__getitem__, reverse=True)[::-1]}.values())[::-1]
The names of the changes are asked for, in a list.
    return sorted(worth, key=saved.__getitem__, reverse=True) -> return {name: saved[name] for name in worth}
    return sorted(worth, key=saved.__getitem__, reverse=True) -> return [saved[name] for name in sorted(worth, key=saved.__getitem__, reverse=True)]
    return sorted(worth, key=saved.__getitem__, reverse=True) -> return len(worth)
The names of the changes are asked for, not of the operations that they change.
    return sorted(worth, key=saved.__getitem__, reverse=True) -> return [changes[name][0] for name in sorted(worth, key=saved.__getitem__, reverse=True)]
""",
)
def worth_trying(profile, changes, least):
    total = sum(profile.values())  #: the milliseconds of the whole step
    saved = {}
    for name, (op, times) in changes.items():  #: every change, with its operation and times as fast
        saved[name] = profile[op] * (1 - 1 / times) / total  #: the saved share of the whole step
    worth = [name for name in changes if saved[name] > least]  #: what saves more than `least`, unsorted
    return sorted(worth, key=saved.__getitem__, reverse=True)


# --- gelu_in_16_passes -----------------------------------------------------------------------------------


def _gelu_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for n, dtype in ((7, np.float64), (1000, np.float64), (501, np.float32)):
        yield f"{n} numbers of {dtype.__name__}", rng.standard_normal(n).astype(dtype).view(Counted)
    yield "numbers from -40 to 40", np.linspace(-40, 40, 81).view(Counted)


def _start_counting(_: Mapping[str, Any]) -> None:
    Counted.entries = 0


def _too_many_passes(_: None, returned: Any, arguments: Mapping[str, Any]) -> str | None:
    passes = round(Counted.entries / arguments["x"].size)
    if passes < 8:
        return (
            f"only {passes} passes over arrays of the size of x are seen, and GELU takes more. Use operators on x as it comes: "
            "a loop over the entries, np.vectorize and np.asarray(x) hide from the count."
        )
    if passes <= 16:
        return None
    return f"it makes {passes} passes over arrays of the size of x; 16 are enough."


@exercise(
    difficulty=3,
    minutes=20,
    cases=_gelu_cases,
    probes=[Probe(_start_counting, _too_many_passes)],
    hints="""
Count the tanh form as it stands: each operator reads its arrays and writes one. Which operators follow tanh, and can the
three become fewer?

1 + tanh(z) = 2 / (1 + e^(-2z)). So y = x / (1 + e^(-2z)): the factor 1/2 is gone, too.

-2z = x (a x² + b) with two constants: np.square, *= a, += b, *= x. Then np.exp, += 1, and one division.
""",
    mistakes="""
[same-passes] In place or not, each operator still reads and writes whole arrays, so fewer passes need fewer operators. Use 1 + tanh(z) = 2 / (1 + e^(-2z)), and put the constants of -2z together: seven operators are enough.
    c = math.sqrt(2 / math.pi)
    return 0.5 * x * (1 + np.tanh(c * (x + 0.044715 * x**3)))

    y = np.square(x)
    y *= 0.044715 * math.sqrt(2 / math.pi)
    y += math.sqrt(2 / math.pi)
    y *= x
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= 0.5
    return y
You make one pass too many: `x * x` reads x twice, np.square(x) once.
    np.square(x) -> x * x
The exponent has the wrong sign: y goes to x for large x, and to 0 for very negative ones.
    -2 * c * 0.044715 -> 2 * c * 0.044715 ; y -= 2 * c -> y += 2 * c
The exponent is -2z: tanh(z) is (e^z - e^-z) / (e^z + e^-z), which is (1 - e^-2z) / (1 + e^-2z).
    -2 * c * 0.044715 -> -c * 0.044715 ; y -= 2 * c -> y -= c
The factor c = √(2/π) belongs to both terms of z.
    -2 * c * 0.044715 -> -2 * 0.044715
    y -= 2 * c -> y -= 2
    c = math.sqrt(2 / math.pi) -> c = 1
The factor is only √(2/π).
    math.sqrt(2 / math.pi) -> math.sqrt(2 * math.pi) || 2 / math.pi || math.sqrt(math.pi / 2)
The cubic term is missing.
    y *= -2 * c * 0.044715 -> y *= 0
The constant of the tanh form is 0.044715.
    0.044715 -> 0.44715 || 0.0044715
x² must still be multiplied by x: z contains x and x³.
    y *= x ->
The term with x alone is missing.
    y -= 2 * c ->
That is 1 / (1 + e^(-2z)), the share of x. Multiply it by x.
    np.divide(x, y, out=y) -> np.divide(1, y, out=y)
The factor 1/2 is gone: y = x / (1 + e^(-2z)).
    np.divide(x, y, out=y) -> np.divide(0.5 * x, y, out=y)
That is x times a sigmoid of 1.702 x, GELU's other approximation (Hendrycks & Gimpel 2016): the tanh form is asked for.
    return x / (1 + np.exp(-1.702 * x))
You write over x, which belongs to the caller.
    y = np.square(x) -> y = np.square(x, out=x)
""",
)
def gelu_in_16_passes(x):
    c = math.sqrt(2 / math.pi)  #: the factor √(2/π) of z
    y = np.square(x)  #: the square of each entry of x
    y *= -2 * c * 0.044715  #: the factor of x² in -2z / x
    y -= 2 * c  #: the constant that is subtracted in -2z / x
    y *= x  # -2z
    np.exp(y, out=y)
    y += 1
    return np.divide(x, y, out=y)
