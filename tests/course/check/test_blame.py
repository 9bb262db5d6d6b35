"""Following an answer: what its expressions give, what another value there makes of it, and what is said of that."""

from __future__ import annotations

import numpy as np
import pytest
from doubling import make

from bert_course.check import path
from bert_course.check.follow import Followed, OutOfTime, is_known, kept, scope_of
from bert_course.check.mistakes import source_of
from bert_course.check.quantities import Quantity, distinct, laid, may_be, near
from bert_course.check.tensors import tensor, traced
from minigrad import Tensor

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch):
    monkeypatch.setattr(path, "SECONDS", 30)


# --- Recording ---------------------------------------------------------------------------------------------


def everything(x, n):
    """All kinds of code: the copy has to do what the original does."""
    first, *rest = [value + 1 for value in x if value > 0]
    table = {"a": first, **{str(i): i for i in range(n)}}
    total: float = 0.0

    def inner(value, by=2):
        nonlocal total
        total += value / by
        return f"{value:.1f} of {n}"

    class Box:
        size = n * 2

        def twice(self):
            return self.size * 2

    words = [inner(value) for value in rest]
    words[0] = words[0].upper()
    box = Box()
    box.size -= 1
    if (half := n // 2) > 0 and not total > 1e9:
        total = total * half if n > 2 else -total
    while total > 100:
        total /= 2
    match n:
        case 3:
            words.append("three")
        case _:
            words.append(str(n))
    try:
        words.append(table["missing"])
    except KeyError:
        words.append("none")
    a = np.arange(6.0).reshape(2, 3)
    a[:, 1:] *= a[0, 0] + 1
    a[0], _ = a[1][::-1], len(rest)
    return words, total, box.twice(), (lambda y, k=n: y * k)(2), a.T.sum(axis=-1), sum(v for v in rest)


def test_the_copy_does_what_the_original_does():
    followed = Followed(source_of(everything), scope_of(everything))
    for x, n in (([1.0, 2.0, 300.0], 3), ([4.5, -1.0, 2.25], 2)):
        followed.record()
        got, want = followed.call(x, n), everything(x, n)
        np.testing.assert_array_equal(got[4], want[4])
        assert got[:4] + got[5:] == want[:4] + want[5:]


def scores(q, k):
    product = q @ k.T
    return product / 2  #: half of them


def followed_scores():
    followed = Followed(source_of(scores), scope_of(scores))
    q, k = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])
    followed.record()
    followed.call(q, k)
    return followed, q, k


def test_each_expression_is_recorded_in_the_order_of_evaluation():
    followed, q, k = followed_scores()
    pieces = [followed.places[number].piece for number in followed.order]
    assert pieces == ["q", "k", "k.T", "q @ k.T", "product", "2", "product / 2"]
    by_piece = {followed.places[number].piece: values for number, values in followed.values.items()}
    np.testing.assert_array_equal(by_piece["q @ k.T"], [q @ k.T])
    last = followed.places[-1]
    assert (last.name, last.line, last.returned) == ("half of them", "return product / 2", True)
    assert {followed.places[number].piece for number in last.inside} == {"product", "2"}


def test_a_value_is_kept_as_it_was():
    array, rows = np.zeros(2), [[1], [2]]
    kept_array, kept_rows = kept(array), kept(rows)
    array += 1
    rows[0].append(3)
    assert kept_array.tolist() == [0, 0]
    assert kept_rows == [[1], [2]]
    assert not any(map(is_known, (kept(print), kept([print]), kept(range(10**6)), kept(np.zeros(10**6)))))


def test_another_value_is_put_in_a_place():
    followed, q, k = followed_scores()
    number = next(place.number for place in followed.places if place.piece == "2")
    followed.put(lambda place, value: 4 if place == number else value)
    np.testing.assert_array_equal(followed.call(q, k), q @ k.T / 4)


def endless(x):
    while True:
        try:
            x = x + 1
        except Exception:
            x = 0


def test_what_has_no_end_is_ended():
    followed = Followed(source_of(endless), scope_of(endless))
    followed.deadline = 0
    with pytest.raises(OutOfTime):
        followed.call(0)


@pytest.mark.parametrize(
    "source", ["", "half = 2; f = lambda x: x / half", "f = lambda x: x", "class F: pass"]
)
def test_what_is_no_function_is_refused(source):
    with pytest.raises(SyntaxError, match="not the source of a function"):
        Followed(source, {})


# --- Quantities --------------------------------------------------------------------------------------------

ROWS = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("want", "got", "layouts"),
    [
        ([ROWS], [ROWS.T], {"as it is", "axes (1, 0)"}),
        ([ROWS], [ROWS[:, None]], {"as it is", "reshaped"}),
        ([ROWS[0]], [ROWS], {"as it is", "repeated"}),
        ([ROWS], [0.0, 0.0], {"rows"}),
        ([ROWS[0], ROWS[1]], [ROWS], {"stacked"}),
        ([[1, 2]], [0, 0], {"rows"}),
        ([ROWS, ROWS, ROWS], [1.0, 2.0], set()),
    ],
)
def test_layouts(want, got, layouts):
    assert {name for name, _ in laid(want, got)} == layouts


def quantity(*values):
    return Quantity.of(None, [list(case) for case in values])


def test_what_gives_the_same_in_one_layout_is_the_same():
    one = quantity([ROWS], [ROWS + 1])
    assert quantity([ROWS.T], [ROWS.T + 1]).is_same(one)
    assert not quantity([ROWS[::-1]], [ROWS + 1]).is_same(one)  # the same numbers, in another order
    assert not quantity([ROWS], [ROWS]).is_same(one)
    assert quantity([ROWS * (1 + 1e-9)], []).is_same(one)  # on the second case it is not evaluated
    assert len(distinct([one, quantity([ROWS], [ROWS + 1]), quantity([ROWS.T], [ROWS.T + 1])])) == 2


@pytest.mark.parametrize(
    ("got", "want", "strictly", "fits"),
    [
        (ROWS, ROWS[0], False, True),
        (ROWS, ROWS[0], True, False),
        (1, 2.5, False, True),
        (1, 10**6, False, False),
        (True, 1, False, False),
        ("a", "b", False, True),
        (np.float64(2), ROWS, False, True),
        ([1, 2], ROWS, True, False),
    ],
)
def test_what_may_stand_in_a_place(got, want, strictly, fits):
    assert may_be([got], [want], strictly) is fits


def test_words_and_numbers_are_near():
    assert near("a", "a")
    assert not near("1", 1)
    assert near([1.0, ROWS], [1.0 + 1e-9, ROWS])
    assert not near(ROWS, ROWS.ravel())
    assert near(10**5000, 10**5000)


# --- Blame -------------------------------------------------------------------------------------------------


def attend(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])  #: the scaled scores
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)  #: rows that sum to 1
    return weights @ v


def attend_cases(rng):
    for n, m in ((3, 5), (4, 4), (2, 6)):
        yield f"{n} queries, {m} keys", *(rng.standard_normal(shape) for shape in ((n, 4), (m, 4), (m, 3)))


def said(answer, right=attend, cases=attend_cases, mistakes="Unlike all.\n    return 17.25 + 0 * v", **more):
    return make(answer=right, cases=cases, mistakes=mistakes, **more).report(answer, 0).paragraphs


def scaled_too_much(queries, keys, values):
    out = []
    raw = np.einsum("id,jd->ji", queries, keys)
    for row in (raw / queries.shape[-1]).T:
        powers = np.exp(row)
        out.append(powers / powers.sum() @ values)
    return np.array(out)


def test_the_first_expression_that_leaves_the_path_is_told_with_what_belongs_there():
    (text,) = said(scaled_too_much)
    assert text.startswith(
        "Look at `raw / queries.shape[-1]`, in the line `for row in (raw / queries.shape[-1]).T:`. What belongs "
        "there: the scaled scores. On 3 queries, 5 keys, 15 of 15 entries are off. The entry [0, 0] should be"
    )


def no_rows(q, k, v):
    s = q @ k.T / 2
    s = np.exp(s - s.max())
    return (s / s.sum()) @ v


def test_what_is_off_the_path_and_harmless_is_not_blamed():
    """Another shift is no mistake; the sum over all rows is one."""
    (text,) = said(no_rows)
    assert text.startswith(
        "Look at `s / s.sum()`, in the line `return (s / s.sum()) @ v`. What belongs there: rows that"
    )


def two_slips(x, w):
    centred = x + x.mean(axis=0)
    return centred, (w**2).sum(axis=1)


def centred_and_lengths(x, w):
    return x - x.mean(axis=0), np.sqrt((w**2).sum(axis=1))


def two_cases(rng):
    for n in (2, 5):
        yield f"n = {n}", rng.standard_normal((n, 3)), rng.standard_normal((n, 2))


def test_two_expressions_are_told_where_no_single_one_does():
    title, first, second = said(two_slips, centred_and_lengths, two_cases, "No.\n    return x, w")
    assert title == "Two mistakes at once."
    assert first.startswith("(1) Look at `x + x.mean(axis=0)`, in the line")
    assert second.startswith("(2) Look at `(w**2).sum(axis=1)`, in the line")


def wrong_scale_and_transposed(q, k, v):
    s = q @ k.T / q.shape[-1]
    s = s - s.max(axis=1)[:, None]
    e = np.exp(s)
    return (e / e.sum(axis=1)[:, None] @ v)[::-1]


def test_an_expression_beside_a_known_mistake():
    mistakes = "The rows are turned round.\n    weights @ v -> (weights @ v)[::-1]"
    title, first, second = said(wrong_scale_and_transposed, mistakes=mistakes)
    assert title == "Two mistakes at once."
    assert first.startswith("(1) Look at `q @ k.T / q.shape[-1]`")
    assert second == "(2) The rows are turned round."


def test_where_nothing_that_is_right_makes_it_right_nothing_is_blamed():
    def of_its_own(q, k, v):
        return np.stack([v.mean(axis=0) + row.sum() for row in q])

    assert said(of_its_own) == []


def verdict(numbers):
    if max(numbers) > 10:
        return "large"
    if min(numbers) < 0:
        return "negative"
    return "none"


def verdict_cases(rng):
    for numbers in ([1, 2], [11, 2], [-1, 2], [12, -3], [10, 0], [-5, 10]):
        yield f"{numbers}", numbers


def in_turn(numbers):
    found = {"large": max(numbers) >= 10, "negative": min(numbers) < 0}
    for name in found:
        if found[name]:
            return name
    return "none"


def test_a_condition_that_should_go_the_other_way():
    (text,) = said(in_turn, verdict, verdict_cases, "Never.\n    return 'none'")
    assert text.startswith("Look at `found[name]`, in the line `if found[name]:`.")
    assert text.endswith(
        "On [10, 0], in turn 1, it should be False, and is True. With that, your answer is right."
    )


def scaled(x):
    return x * x.mean()


def changed_while_needed(x):
    y = x.reshape(-1)
    mean = x.mean()
    y *= 2
    return x * mean


def one_case(rng):
    yield "three", rng.standard_normal(3)
    yield "four", rng.standard_normal(4)


def test_a_value_that_is_changed_later_is_told_as_such():
    *_, text = said(changed_while_needed, scaled, one_case, "No.\n    return x")
    assert text.startswith("Look at `x`, in the line `return x * mean`. It has been changed on the way.")


def drawn(x, f):
    rng = np.random.default_rng(0)
    sample = rng.normal(size=3)
    return float(np.abs(f(sample)).max() + 1 + x)


def probing(x, f):
    probe = np.ones(3)
    return float(np.abs(f(probe)).max() + x)


def probing_cases(rng):
    for n in range(3):
        yield f"{n}", float(n), lambda values: 2 * values / np.abs(values).max()


def test_numbers_of_the_learners_own_choice_are_not_blamed():
    texts = " ".join(said(drawn, probing, probing_cases, "No.\n    return 0.5"))
    assert texts.endswith("Look at `np.abs(f(sample)).max() + 1`.")


# --- Tensors -----------------------------------------------------------------------------------------------


def squares(x, w):
    hidden = x * w  #: the product
    return hidden * hidden


def out_of_the_graph(x, w):
    hidden = Tensor(x.data * w.data)
    return hidden * (x * w)


def tensor_cases(rng):
    for n in (2, 3):
        yield f"n = {n}", tensor(rng.standard_normal(n)), tensor(rng.standard_normal(n))


def test_a_gradient_that_is_lost_is_blamed_where_it_is_lost():
    *_, text = said(out_of_the_graph, squares, tensor_cases, "No.\n    return x", observed=traced)
    assert text == (
        "Look at `Tensor(x.data * w.data)`, in the line `hidden = Tensor(x.data * w.data)`. "
        "Its numbers are right; its gradient should be too. With that, your answer is right."
    )


def slowly_squared(x, w):
    for _ in range(100):
        np.linspace(0, 1, 100_000).sum()
    return x * w * (x * w)


def only_half(x, w):
    hidden = x * w / 2
    return hidden * hidden


def test_a_right_answer_that_takes_longer_than_the_learners_ends_nothing():
    assert said(only_half, slowly_squared, tensor_cases, "No.\n    return x", observed=traced)
