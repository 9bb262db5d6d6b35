"""What a step costs: how long a product takes at least (exercises of chapter 24 so far)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.course.check.exercise import exercise

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
    chapter=24,
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
You count 2 k - 1 FLOPs for an entry of the result. The count that everybody uses, 2 n k m, takes the first addition, to 0, as one too.
    2 * n * k * m -> (2 * k - 1) * n * m
Each of the n m entries of the result is a sum of k products: your FLOPs do not grow with all three sizes.
    2 * n * k * m -> 2 * n * m || 2 * n * k
n, k and m differ here: a rule for a square product does not hold.
    2 * n * k * m -> 2 * n**3
    memory > compute -> n / 6 < peak / bandwidth ; max(compute, memory) -> memory if bound == "memory" else compute
    memory > compute -> n / 6 < peak / bandwidth
You count numbers, not bytes: a float32 has four.
    4 * ( -> 1 * (
Each number is moved once, and a float32 has four bytes: you count more for each, or fewer (eight are for float64, and bits are no bytes).
    4 * ( -> 8 * ( || 2 * ( || 32 * (
The result must be written too: n m numbers more.
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
Your times are not in seconds: the rates are FLOPs and bytes per second, without milli, micro or giga.
    seconds = -> seconds = 1e3 * || seconds = 1e6 * || seconds = 1e9 * || seconds = 1e-9 * || seconds = 1e-12 *
That is the rate below the roof, FLOPs per second: the FLOPs over it are the time.
    max(compute, memory) -> flops / max(compute, memory)
Your second value is no time. Work over rate is one; rate over work is not, and FLOPs per byte are not.
    max(compute, memory) -> 1 / max(compute, memory) || flops / moved
You round the seconds: the times here are small parts of one, and // and int() leave nothing of them.
    max(compute, memory) -> max(compute, memory) // 1 || round(max(compute, memory), 6) || round(max(compute, memory), 9)
    flops / peak -> flops // peak ; moved / bandwidth -> moved // bandwidth
    flops / peak -> flops // peak ; moved / bandwidth -> moved // bandwidth ; memory > compute -> memory >= compute
The word comes first, then the seconds.
    return bound, seconds -> return seconds, bound
Two values are asked for: the word for the longer time, and that time.
    return bound, seconds -> return compute, memory || return memory, compute || return {"compute": compute, "memory": memory} || return bound
    return bound, seconds -> return seconds
The words are spelt "memory" and "compute".
    "compute" -> "arithmetic"
    "compute" -> "Compute" ; "memory" -> "Memory"
    return bound -> return memory > compute || return memory <= compute
""",
)
def product_bound(n, k, m, peak, bandwidth):
    flops = 2 * n * k * m
    moved = 4 * (n * k + k * m + n * m)  # bytes
    compute = flops / peak
    memory = moved / bandwidth
    bound = "memory" if memory > compute else "compute"
    seconds = max(compute, memory)
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
    chapter=24,
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
A negative length, or a division by zero: FLOPs per byte grow with L, but not without limit. On some machines they never reach peak / bandwidth.
    gain <= 0 -> False || gain < 0 || gain == 0 || d_k <= peak / bandwidth || 2 * d_k <= peak / bandwidth
There is such an L on more machines than you think: FLOPs per byte come near to d_k / 2 when L is large.
    gain <= 0 -> d_k / 4 <= peak / bandwidth || True
You stop looking too early: on one of these machines there is such an L, far out. What do FLOPs per byte come to when L is very large?
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 100 * gain || gain <= 0 or inputs / bandwidth > 128 * gain
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 200 * gain || gain <= 0 or inputs / bandwidth > 256 * gain
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 512 * gain || gain <= 0 or inputs / bandwidth > 4096 * gain
    gain <= 0 -> gain <= 0 or inputs / bandwidth > 1e5 * gain
Your search ends at a limit of its own, and you return the limit. On one of these machines such an L lies far out, on others there is none: which of the two it is, FLOPs per byte at a very large L tell.
    return min(right(d_k, peak, bandwidth), 10**5)

    return min(right(d_k, peak, bandwidth), 10**4)

    return min(right(d_k, peak, bandwidth), 10**6)
On some machines that is the last L that still waits for memory: the next one is asked for. (Rounding? Up.)
    math.ceil(least) -> math.floor(least) || math.ceil(least) - 1 || round(least)
A length is a whole number: round up to the first one that waits for arithmetic.
    math.ceil(least) -> least
On some machines a smaller L waits for arithmetic already: every length counts, from 1 on and in steps of 1.
    math.ceil(least) -> math.ceil(least) + 1 || max(d_k, math.ceil(least)) || 2 ** math.ceil(math.log2(least)) || 8 * math.ceil(least / 8)
    math.ceil(least) -> 10 * math.ceil(least / 10) || 16 * math.ceil(least / 16) || 64 * math.ceil(least / 64) || 100 * math.ceil(least / 100)
Where there is no such L, return math.inf: every length lies below it.
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
You take (d_k, L) times (L, d_k), which sums over the tokens. The scores have a sum over d_k for each two tokens.
    gain = flops / peak - output / bandwidth -> gain = flops * d_k / peak - inputs / bandwidth ; inputs / bandwidth / gain -> 4 * d_k**2 / bandwidth / gain
Two matrices are read, Q and K: 2 d_k L numbers.
    inputs = 4 * 2 * d_k -> inputs = 4 * d_k
FLOPs per byte are twice what you take: each of the d_k L² terms is a multiplication and an addition, and a float32 has four bytes, not eight.
    flops = 2 * d_k -> flops = d_k
    inputs = 4 * -> inputs = 8 * ; output = 4 -> output = 8
FLOPs per byte are half of what you take: a float32 has four bytes, and a term is one multiplication and one addition.
    inputs = 4 * -> inputs = 2 * ; output = 4 -> output = 2
A float32 has four bytes, and the bandwidth is in bytes. You count numbers, or bits.
    inputs = 4 * 2 * d_k -> inputs = 2 * d_k ; output = 4 -> output = 1
    inputs = 4 * -> inputs = 32 * ; output = 4 -> output = 32
You took 64 for d_k: it is the first argument.
    2 * d_k -> 2 * 64
The rule for a square product, L / 6 FLOPs per byte, holds for L = d_k only: here L grows and d_k does not.
    return math.ceil(6 * peak / bandwidth)

    return math.ceil(6 * peak / bandwidth) if d_k > 2 * peak / bandwidth else math.inf
That is peak / bandwidth itself. The L at which the scores' FLOPs per byte come to it is asked for. (It also comes out if numbers are counted for bytes and the L² scores are left out.)
    return math.ceil(peak / bandwidth)

    return peak / bandwidth
d_k / 2 is what FLOPs per byte come to when L is very large. The L at which they come to peak / bandwidth is asked for.
    math.ceil(least) -> d_k / 2
""",
)
def from_which_length(d_k, peak, bandwidth):
    flops = 2 * d_k  # for each of the L² scores
    inputs = 4 * 2 * d_k  # bytes of Q and K, for each of L tokens
    output = 4  # bytes, for each of the L² scores
    # Arithmetic takes flops L² / peak, memory (inputs L + output L²) / bandwidth. Both are divided by L² here.
    gain = flops / peak - output / bandwidth
    if gain <= 0:  # then memory takes longer, however large L is
        return math.inf
    least = inputs / bandwidth / gain
    return math.ceil(least)
