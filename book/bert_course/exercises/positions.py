"""Chapter `positions`: positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- sinusoids -------------------------------------------------------------------------------------------


def _sizes(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "4 positions, d_model = 4", 4, 4
    yield "5 positions, d_model = 8", 5, 8
    yield "one position, d_model = 6", 1, 6
    yield "6 positions, d_model = 2", 6, 2
    L = int(rng.integers(30, 60))
    yield f"{L} positions, d_model = 10", L, 10
    yield "512 positions, d_model = 64", 512, 64


@exercise(
    difficulty=1,
    minutes=10,
    cases=_sizes,
    hints="""
Positions run down the rows, and hands run across: i has shape (L, 1) and n has shape (d_model / 2,), so i * omega has shape (L, d_model / 2).

Hand n has the frequency 10000 ** (-2 n / d_model). Both of its columns use this frequency: the sine is column 2n, and the cosine is column 2n + 1.

table[:, 0::2] is every second column from the first on, and table[:, 1::2] is every second column from the second on.
""",
    mistakes="""
Sine and cosine have changed places: the sine is column 2n, so the first row begins with 0 and 1.
    0::2] = np.sin -> 0::2] = np.cos ; 1::2] = np.cos -> 1::2] = np.sin
All sines are in the first half and all cosines in the second. Here the sine and the cosine of a hand are side by side, in columns 2n and 2n + 1.
    table[:, 0::2] -> table[:, : d_model // 2] ; table[:, 1::2] -> table[:, d_model // 2 :]
The cosine has a frequency of its own, made from its column's number. Both columns of a hand must have the frequency of hand n, or they are not a point on a circle.
    np.cos(i * omega) -> np.cos(i * 10000.0 ** (-(2 * n + 1) / d_model))
The exponent has the wrong sign, so your hands become faster from pair to pair. Later hands must be slower.
    -2 * n / d_model -> 2 * n / d_model
The exponent is half of what it should be. It is -2n / d_model, where n counts hands and not columns.
    -2 * n / d_model -> -n / d_model
The exponent is twice what it should be. The letter n counts hands, so 2n is already the column.
    -2 * n / d_model -> -4 * n / d_model
You divide by d_model / 2 - 1, so that the slowest hand has the frequency 1/10000 exactly. Some code does this, but the formula divides by d_model / 2.
    -2 * n / d_model -> -n / max(d_model // 2 - 1, 1)
The base of the frequencies is 10000.
    10000.0 -> 1000.0 || 100000.0 || 2.0
Your positions begin at 1. The first position is 0, where every hand has sine 0 and cosine 1.
    np.arange(L)[:, None] -> np.arange(1, L + 1)[:, None]
You divide the position by the length, so a row depends on how long the text is. Row i must be the same in every table.
    np.arange(L)[:, None] -> np.arange(L)[:, None] / L
Both columns of a hand hold the sine. One of them must be the cosine, because a sine alone has the same value on its way up and on its way down.
    np.cos(i * omega) -> np.sin(i * omega)
Both columns of a hand hold the cosine. One of them must be the sine, because a cosine alone has the same value on its way up and on its way down.
    np.sin(i * omega) -> np.cos(i * omega)
You turn by 2π ω at each step. The angle of hand n at position i is i ω, in radians.
    np.sin(i * omega) -> np.sin(2 * np.pi * i * omega) ; np.cos(i * omega) -> np.cos(2 * np.pi * i * omega)
You take the angle in degrees, but it is in radians, as np.sin expects.
    np.sin(i * omega) -> np.sin(np.radians(i * omega)) ; np.cos(i * omega) -> np.cos(np.radians(i * omega))
Positions run across and hands run down in your table. A row must be one position.
    return table -> return table.T
The table holds whole numbers, so everything after the decimal point is cut off.
    np.zeros((L, d_model)) -> np.zeros((L, d_model), int)
All your hands have the same frequency, but the frequency depends on n.
    10000.0 ** (-2 * n / d_model) -> np.ones(d_model // 2)
Brackets are missing. The power comes before the division, so you divide 10000 ** (2n) by d_model. The exponent is 2n / d_model.
    10000.0 ** (-2 * n / d_model) -> 10000.0 ** (-2.0 * n) * d_model || 10000.0 ** (-2.0 * n) / d_model
You divide by L in the exponent. The exponent is -2n / d_model, so it does not depend on L.
    -2 * n / d_model -> -2 * n / L
The cosines are missing.
    np.cos(i * omega) -> 0
The sines are missing.
    np.sin(i * omega) -> 0
Row 0 is missing. At position 0 the sines are 0, and the cosines are 1.
    return table -> table[0] = 0; return table
""",
)
def sinusoids(L, d_model):
    i = np.arange(L)[:, None]  #: the positions from 0, one for each row, (L, 1)
    n = np.arange(d_model // 2)  #: the numbers of the hands, from 0
    omega = 10000.0 ** (-2 * n / d_model)  #: each hand's turn from a position to the next
    table = np.zeros((L, d_model))
    table[:, 0::2] = np.sin(i * omega)  #: the sine of each hand's angle at each position
    table[:, 1::2] = np.cos(i * omega)  #: the cosine of each hand's angle at each position
    return table


# --- shift_matrix ----------------------------------------------------------------------------------------


def _shifts(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "k = 1, d_model = 2", 1, 2
    yield "k = 3, d_model = 6", 3, 6
    yield "k = 0, d_model = 4", 0, 4
    yield "k = -3, d_model = 8", -3, 8
    k = int(rng.integers(20, 400))
    yield f"k = {k}, d_model = 12", k, 12


@exercise(
    difficulty=2,
    minutes=20,
    cases=_shifts,
    hints="""
Begin with one hand, d_model = 2. Write sin((i + k) ω) and cos((i + k) ω) with the addition theorems. What multiplies sin(i ω), and what multiplies cos(i ω)?

sin(iω + kω) = sin(iω) cos(kω) + cos(iω) sin(kω), and cos(iω + kω) = cos(iω) cos(kω) - sin(iω) sin(kω). A row stands to the left of the block, so column 0 of the block makes the new sine, and column 1 makes the new cosine.

Each hand has a block on the diagonal, in rows and columns 2n and 2n + 1. Everything else is 0.
""",
    mistakes="""
Your matrix moves by -k, or by k where the vectors are columns. Here they are rows, as in row @ R, so the minus is above the diagonal.
    = -np.sin(angle) -> = np.sin(angle) ; 2 * n] = np.sin(angle) -> 2 * n] = -np.sin(angle)
A minus is missing: cos(a + b) = cos a cos b - sin a sin b.
    = -np.sin(angle) -> = np.sin(angle)
There is one minus too many: sin(a + b) = sin a cos b + cos a sin b.
    2 * n] = np.sin(angle) -> 2 * n] = -np.sin(angle)
k does not enter, so you return the matrix of one step. Hand n turns by k ω.
    k * omega -> omega
You multiply the matrix of one step by k. A move by k positions turns each hand by k times its angle.
    k * omega -> omega ; return R -> return k * R
All your hands turn by the same angle, but hand n has the frequency 10000 ** (-2 n / d_model).
    k * omega -> k * np.ones_like(omega)
The exponent is half of what it should be. It is -2n / d_model, where n counts hands and not columns.
    -2 * np.arange -> -1 * np.arange
The exponent has the wrong sign. Later hands must be slower.
    -2 * np.arange -> 2 * np.arange
Your blocks are made for a table with all sines in its first half. Here the two columns of a hand are side by side.
    R[2 * n, 2 * n] -> R[n, n] ; R[2 * n, 2 * n + 1] -> R[n, n + d_model // 2] ; R[2 * n + 1, 2 * n] -> R[n + d_model // 2, n] ; R[2 * n + 1, 2 * n + 1] -> R[n + d_model // 2, n + d_model // 2]
Sine and cosine have changed places in the blocks: for k = 0 the matrix has to be the identity.
    2 * n] = np.cos(angle) -> 2 * n] = np.sin(angle) ; = -np.sin(angle) -> = -np.cos(angle) ; 2 * n] = np.sin(angle) -> 2 * n] = np.cos(angle) ; 2 * n + 1] = np.cos(angle) -> 2 * n + 1] = np.sin(angle)
Your matrix moves columns. Positions are rows of the table, and a shift turns the hands of each row.
    return R -> return np.eye(d_model, k=k) || return np.eye(d_model, k=-k) || return np.roll(np.eye(d_model), k, axis=1)
The lower left of each block is missing, but the new sine needs the old cosine too.
    2 * n] = np.sin(angle) -> 2 * n] = 0
The upper right of each block is missing, but the new cosine needs the old sine too.
    = -np.sin(angle) -> = 0
The blocks have only their diagonals, but the sine and the cosine of a hand mix when it turns.
    = -np.sin(angle) -> = 0 ; 2 * n] = np.sin(angle) -> 2 * n] = 0
You turn in degrees, but the angle is in radians.
    enumerate(k * omega) -> enumerate(np.radians(k * omega))
The base of the frequencies is 10000.
    10000.0 -> 1000.0 || 100000.0
The last hand is missing. There are d_model / 2 of them, including the slowest.
    enumerate(k * omega) -> enumerate((k * omega)[:-1])
    R = np.zeros((d_model, d_model)) -> R = np.eye(d_model) ; enumerate(k * omega) -> enumerate((k * omega)[:-1])
""",
)
def shift_matrix(k, d_model):
    omega = 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)  #: each hand's turn in one step
    R = np.zeros((d_model, d_model))
    for n, angle in enumerate(k * omega):  #: each hand's number, and its turn in k steps
        R[2 * n, 2 * n] = np.cos(angle)  #: what multiplies the old sine in the new sine
        R[2 * n, 2 * n + 1] = -np.sin(angle)  #: what multiplies the old sine in the new cosine
        R[2 * n + 1, 2 * n] = np.sin(angle)  #: what multiplies the old cosine in the new sine
        R[2 * n + 1, 2 * n + 1] = np.cos(angle)  #: what multiplies the old cosine in the new cosine
    return R


# --- look_back -------------------------------------------------------------------------------------------


def _lengths(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "16 tokens, a share of 0.95", 16, 0.95
    yield "5 tokens, a share of 0.5", 5, 0.5
    yield "2 tokens, a share of 0.9", 2, 0.9
    L, share = int(rng.integers(20, 100)), round(float(rng.uniform(0.3, 0.9)), 2)
    yield f"{L} tokens, a share of {share}", L, share
    yield "10 tokens, a share of 0.1", 10, 0.1


@exercise(
    difficulty=2,
    minutes=15,
    cases=_lengths,
    given="spread_out",
    hints="""
b has a number for each distance j - i: from -(L - 1) at b[0], through 0 at b[L - 1], to L - 1 at the end. Which entry belongs to the token before?

With 0 everywhere else, the shares of a row are e^b / (e^b + L - 1) for the token before and 1 / (e^b + L - 1) for each of the others.

Set e^b / (e^b + L - 1) to the share, and solve for b.
""",
    mistakes="""
There are L - 1 other tokens, and together they weigh L - 1 times as much as one of them. Your number forgets that.
    * (L - 1) ->
You count L other tokens. A row has L tokens, and the token before is one of them, so there are L - 1 others.
    * (L - 1) -> * L
You leave out the token itself. It is one of the L - 1 others.
    * (L - 1) -> * max(L - 2, 1)
Your number does not depend on the length. In a longer text more tokens share the rest, so the bias has to grow.
    * (L - 1) -> * 15
Your bias looks at the token after. The token before has the distance j - i = -1, which is b[L - 2].
    b[L - 2] -> b[L]
The distance 0 is the token itself. The token before has the distance -1, which is b[L - 2].
    b[L - 2] -> b[L - 1]
Your bias looks two tokens back. The distance -1 is b[L - 2].
    b[L - 2] -> b[L - 3]
b[-1] is the last entry, the largest distance to the right. The distance -1 is b[L - 2].
    b[L - 2] -> b[-1]
b[1] belongs to the distance 2 - L. The distance 0 is at b[L - 1], so -1 is at b[L - 2].
    b[L - 2] -> b[1]
Your number is e to the power of the bias. The shares are made with powers of e, so take the logarithm.
    math.log(share / (1 - share) * (L - 1)) -> share / (1 - share) * (L - 1)
The bias is a score and not a share. The exponentials turn scores into shares.
    math.log(share / (1 - share) * (L - 1)) -> share
You forget what the others weigh. The token before weighs `share` where all others together weigh 1 - share.
    math.log(share / (1 - share) * (L - 1)) -> math.log(share * (L - 1)) || math.log(share * L)
The logarithm of the share alone is below 0, so the token before would get less than the others.
    math.log(share / (1 - share) * (L - 1)) -> math.log(share)
The shares are made with powers of e, so the logarithm is the natural one.
    math.log( -> math.log2( || math.log10(
A large number gives everything to the token before, but the share must be exact.
    math.log(share / (1 - share) * (L - 1)) -> 100.0 || 20.0 || 50.0
The fraction is upside down. A larger share needs a larger bias.
    share / (1 - share) -> (1 - share) / share
You divide by the number of other tokens, but more of them need a larger bias.
    * (L - 1) -> / (L - 1)
The sign is wrong, so the token before gets the least.
    = math.log -> = -math.log
You shut the other tokens out. They must share what is left, and the first token, which has no token before it, still needs them.
    math.log(share / (1 - share) * (L - 1)) -> 0 ; np.zeros(2 * L - 1) -> np.full(2 * L - 1, -1e9) || np.full(2 * L - 1, -np.inf)
""",
)
def look_back(L, share):
    b = np.zeros(2 * L - 1)  #: a bias of 0 for each distance
    b[L - 2] = math.log(share / (1 - share) * (L - 1))  #: the bias for the token before
    i = np.arange(L)  #: the positions of the tokens, from 0
    E = np.exp(b[i - i[:, None] + L - 1])  #: the exponential of each pair's bias, (L, L)
    return E / E.sum(axis=1, keepdims=True)  # (L, L)


# --- table_fault -----------------------------------------------------------------------------------------


def _hands(angles: np.ndarray) -> np.ndarray:
    """A table (L, 2 n) of points on circles, from their angles (L, n)."""
    table = np.empty((len(angles), 2 * angles.shape[1]))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def _tables(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    i, n = np.arange(20)[:, None], np.arange(8)
    omega = 10000.0 ** (-2 * n / 16)
    right = _hands(i * omega)
    yield "a right table", right
    yield "a right table of another size", _hands(np.arange(9)[:, None] * 10000.0 ** (-2 * np.arange(3) / 6))
    yield "positions from 1", _hands((i + 1) * omega)
    cosines = right.copy()
    cosines[:, 1::2] = np.cos(i * 10000.0 ** (-(2 * n + 1) / 16))
    yield "cosines with frequencies of their own", cosines
    dealt = right.copy()
    dealt[:, [0, 4]] = dealt[:, [4, 0]]
    yield "the sines of two hands swapped", dealt
    for column, by, name in ((1, -0.125, "one cosine"), (4, 0.125, "one sine"), (7, 0.125, "another cosine")):
        off = right.copy()
        off[0, column] += by
        yield f"{name} of row 0 is off", off
    yield "rows and columns swapped", _hands(np.arange(16)[:, None] * 10000.0 ** (-2 * np.arange(8) / 16)).T
    yield "positions squared", _hands(i**2 * omega)
    steps = np.r_[0, 1, -1, -1, 1, rng.choice([-1, 1], 15)]
    yield "steps to and fro", _hands(np.cumsum(steps)[:, None] * omega)
    yield "the right row 1, and every second row the same", _hands(i % 2 * omega)
    turned = right.copy()
    turned[:, 4] *= -1
    yield "a hand that turns the other way", turned
    yield "angles in degrees", _hands(np.radians(i * omega))
    yield "an exponent without the 2", _hands(i * omega**0.5)
    yield "the slowest hand first", _hands(i * omega[::-1])
    noise = rng.standard_normal((20, 16))
    noise[0] = right[0]
    yield "random numbers below the right row 0", noise
    yield "two faults: random numbers in all rows", rng.standard_normal((20, 16))


@exercise(
    difficulty=2,
    minutes=20,
    cases=_tables,
    hints="""
table[:, 0::2] are the sines and table[:, 1::2] the cosines, both (L, d_model / 2). "start" looks at table[0] alone, and "pairs" at the sum of squares of each pair.

gram = table @ table.T holds all dot products. np.diag(gram, k) holds those of rows that lie k apart, and for each k they must be equal.

For "frequencies", use np.allclose to compare the sines and the cosines of all rows with those of i ω.
""",
    mistakes="""
The test of the start is missing: at position 0 each hand has sine 0 and cosine 1.
    if not same(table[0], [0, 1] * (d_model // 2)): -> if False:
The test of the pairs is missing: sine² + cosine² of one angle is 1.
    if not same(sines**2 + cosines**2, 1): -> if False:
The test of the distance is missing: for each k, all rows that lie k apart have the same dot product.
    if not all(same(np.diag(gram, k), gram[0, k]) for k in range(L)): -> if False:
The test of the frequencies is missing. A table can have all the other properties and still turn too slowly.
    if not (same(sines, np.sin(i * omega)) and same(cosines, np.cos(i * omega))): -> if False:
You test only rows that lie one apart. Steps to and fro have equal lengths too, so test every distance.
    for k in range(L) -> for k in (0, 1)
Your test of the frequencies looks at row 1 alone. The rows after row 1 may still be wrong.
    same(sines, np.sin(i * omega)) and same(cosines, np.cos(i * omega)) -> same(np.arctan2(sines[1], cosines[1]), omega) || same(sines[1], np.sin(omega)) and same(cosines[1], np.cos(omega))
You compare with the right table before you test the pairs. If several tests fail, return the name of the first in the list.
    if not same(sines**2 + cosines**2, 1): -> if not (same(sines, np.sin(i * omega)) and same(cosines, np.cos(i * omega))): ; return "pairs" -> return "frequencies"
You test the distance before the pairs. If several tests fail, return the name of the first in the list.
    if not same(sines**2 + cosines**2, 1): -> if not all(same(np.diag(gram, k), gram[0, k]) for k in range(L)): ; return "pairs" -> return "distance" ; if not all(same(np.diag(gram, k), gram[0, k]) for k in range(L)): -> if not same(sines**2 + cosines**2, 1): ; return "distance" -> return "pairs"
You test the start after the others. If several tests fail, return the name of the first in the list.
    if not same(table[0], [0, 1] * (d_model // 2)): -> if not same(sines**2 + cosines**2, 1): ; return "start" -> return "pairs" ; if not same(sines**2 + cosines**2, 1): -> if not same(table[0], [0, 1] * (d_model // 2)): ; return "pairs" -> return "start"
[floats-by-equals] You compare floats with ==. Rounding turns a 1 into 0.9999999999999999, so a right table fails. Allow for a small difference, as np.allclose does.
    same = np.allclose -> same = lambda x, y: bool(np.all(x == np.asarray(y)))
    if not same(sines**2 + cosines**2, 1): -> if (sines**2 + cosines**2 != 1).any():
You compare without absolute values, so a number that is off in one direction is never noticed. A difference can be below 0 too: take np.abs of it, or np.allclose.
    same = np.allclose -> same = lambda x, y: bool(np.all(x - np.asarray(y) < 1e-6)) || same = lambda x, y: bool(np.all(np.asarray(y) - x < 1e-6))
[half-a-start] You look at half of row 0. Its sines are 0, and its cosines are 1.
    if not same(table[0], [0, 1] * (d_model // 2)): -> if not same(sines[0], 0): || if not same(cosines[0], 1):
At position 0 the sine is 0 and the cosine is 1, not the other way round.
    [0, 1] * (d_model // 2) -> [1, 0] * (d_model // 2)
The first half of the columns does not hold the sines. The sine and the cosine of a hand are side by side.
    table[:, 0::2], table[:, 1::2] -> table[:, : d_model // 2], table[:, d_model // 2 :]
Your frequencies lack the 2 in the exponent, -2n / d_model.
    -2 * np.arange -> -1 * np.arange
Return the name "none" if no test fails.
    return "none" -> return "" || return None
Your dot products are those of columns. Positions are rows, so compute table @ table.T.
    table @ table.T -> table.T @ table
Your test of the pairs adds up the whole row. Each pair of columns by itself has sine² + cosine² = 1.
    same(sines**2 + cosines**2, 1) -> same((table**2).sum(axis=1), d_model / 2)
Your test of the frequencies looks at the cosines alone. A hand that turns the other way has the same ones.
    same(sines, np.sin(i * omega)) and same(cosines, np.cos(i * omega)) -> same(cosines, np.cos(i * omega))
""",
)
def table_fault(table):
    L, d_model = table.shape  #: the numbers of positions and of columns
    i = np.arange(L)[:, None]  #: the positions from 0, one for each row, (L, 1)
    omega = 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)  #: each hand's turn in one step
    sines, cosines = table[:, 0::2], table[:, 1::2]  #: the columns of the sines, and those of the cosines
    gram = table @ table.T  #: the dot products of all pairs of rows
    same = np.allclose
    if not same(table[0], [0, 1] * (d_model // 2)):
        return "start"
    if not same(sines**2 + cosines**2, 1):
        return "pairs"
    if not all(same(np.diag(gram, k), gram[0, k]) for k in range(L)):
        return "distance"
    if not (same(sines, np.sin(i * omega)) and same(cosines, np.cos(i * omega))):
        return "frequencies"
    return "none"


# --- first_rise ------------------------------------------------------------------------------------------


def _widths(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for d_model in (2, 64, 128, 768, 4, 2 * int(rng.integers(80, 120))):
        yield f"d_model = {d_model}", d_model


@exercise(
    difficulty=2,
    minutes=15,
    cases=_widths,
    hints="""
You do not need the table: the dot product of rows that lie k apart is the sum of cos(k ω) over the hands.

Compute it for k = 0, 1, 2, … and stop at the first k whose sum is larger than that of k - 1.
""",
    mistakes="""
You return the last distance on the way down. Return the first distance at which the sum is larger than before.
    return k -> return k - 1
You return the distance after the rise. Return the distance that has the larger sum.
    return k -> return k + 1
You return the distance at which rows are least alike among the first 512. Return the distance at which the fall stops for the first time.
    return k -> return int(np.argmin([similarity(k) for k in range(512)]))
You return one full turn of the fastest hand, rounded. The cosines of the slower hands go on falling while the fastest hand returns, so find the first rise of the sum.
    return k -> return 6 || return 7
The answer depends on d_model. With more columns more hands are slow, and their fall hides the return of the fast hands.
    return k -> return 44 || return 4 || return 12
The exponent is half of what it should be. It is -2n / d_model, where n counts hands and not columns.
    -2 * np.arange -> -1 * np.arange
You compare with the start, which no sum exceeds. Compare each distance with the one before it.
    return k -> return 2000
You return the sum. Return the distance.
    return k -> return similarity(k)
You compare absolute values, but a sum below 0 is smaller than 0.
    similarity(k) <= similarity(k - 1) -> abs(similarity(k)) <= abs(similarity(k - 1))
""",
)
def first_rise(d_model):
    omega = 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)  #: each hand's turn in one step

    def similarity(k):
        return np.cos(k * omega).sum()  #: the dot product of rows that lie k apart

    k = 1  #: the smallest distance to look at
    while similarity(k) <= similarity(k - 1):
        k += 1
    return k
