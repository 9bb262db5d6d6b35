"""Mistakes that anybody makes: what is changed in a right answer, what is said of it, and when nothing is said."""

from __future__ import annotations

import re

import numpy as np
import pytest
from doubling import make

from bert_course.check.mutants import mutants

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]


def weighted(x, w, n):
    """π ≠ 3: the columns of a node count bytes."""
    total = 0.0
    for i in range(n):
        total += w[i] * x[:, i].sum()
    best = np.where(x > 0, x, -x).max(axis=0)
    return best @ w / n - total


def steps(x, w, n):
    x = x * 2.0
    x = x + w
    return [row[0] for row in x if row[0] > 0 and row[1] < 1.5] + [float(n // 2)]


def cases(rng):
    for n in (2, 3, 5):
        yield f"n = {n}", rng.standard_normal((4, n)), rng.standard_normal(n), n


def step_cases(rng):
    for n in (2, 3, 4, 5, 6):
        yield f"n = {n}", rng.standard_normal((9, n)), rng.standard_normal(n), n


def said(answer, right=weighted, of=cases):
    """What a check of `right` says of an answer: the first paragraph after the verdict."""
    return make(answer=right, cases=of, mistakes="Unlike all.\n    return 17.25").report(answer, 0).paragraphs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("best @ w / n", "best @ w"), "a division by `n` is missing"),
        (("- total", "+ total"), "something is subtracted that has to be added"),  # to the total
        (("total += ", "total = "), "only the last is kept where all have to be added up"),
        (("range(n)", "range(n - 1)"), "a loop leaves out its last turn"),
        (("range(n)", "range(1, n)"), "a loop leaves out its first turn"),
        (("w[i] * x[:, i]", "x[:, i]"), "a factor is missing"),
        ((".sum()", ".mean()"), "a mean stands in the place of a sum"),
        ((".max(axis=0)", ".min(axis=0)"), "the smallest is taken in the place of the largest"),
        (("x, -x)", "-x, x)"), "the two sides of a choice have changed places"),
        (("/ n", "/ (n - 1)"), "`n` is one too small"),
    ],
)
def test_a_mistake_of_anybody_is_named(change, words):
    assert said(edited(weighted, change)) == [f"Somewhere, {words}."]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("    x = x * 2.0\n    x = x + w\n", "    x = x + w\n    x = x * 2.0\n"), "two steps have changed places"),
        ((" and row[1] < 1.5", ""), "one of several conditions is missing"),
        (("row[0] for", "row[-1] for"), "the last is taken, not the first"),
    ],
)  # fmt: skip
def test_and_one_in_a_condition_or_an_order(change, words):
    assert said(edited(steps, change), steps, step_cases) == [f"Somewhere, {words}."]


def edited(function, change):
    """A function with a piece of its source changed."""
    from bert_course.check.mistakes import source_of

    source = source_of(function)
    assert source.count(change[0]) == 1
    scope = {"np": np}
    exec(source.replace(*change), scope)
    return scope[function.__name__]


def test_what_an_exercise_knows_comes_first():
    exercise = make(answer=weighted, cases=cases, mistakes="You forget n.\n    best @ w / n -> best @ w")
    assert exercise.report(edited(weighted, ("best @ w / n", "best @ w")), 0).paragraphs == ["You forget n."]


def unweighted_times_n(x, w, n):
    total = x.sum()
    best = np.where(x > 0, x, -x).max(axis=0)
    return best @ w * n - total


def test_with_a_mistake_that_the_exercise_knows_it_makes_two():
    exercise = make(answer=weighted, cases=cases, mistakes="You forget w.\n    w[i] * x[:, i] -> x[:, i]")
    assert exercise.report(unweighted_times_n, 0).paragraphs == [
        "Two mistakes at once.",
        "(1) Look at `best @ w * n`, in the line `return best @ w * n - total`. On n = 2, it should be -1.05806, "
        "and is -4.23225.",
        "(2) You forget w.",
    ]


def test_a_word_or_two_may_be_chance():
    """Of yes and no on one case, some mistake is always the right one."""
    numbers = [("a", 1.0, 2.0), ("b", 2.0, 1.0), ("c", 2.0, 2.0)]
    exercise = make(answer=above, cases=lambda rng: numbers, mistakes="No.\n    return 3")
    report = exercise.report(lambda x, limit: x >= limit, 0)
    assert report.verdict == "wrong"
    assert report.paragraphs == []


def above(x, limit):
    return x > limit


def until(x):
    while x > 1:
        x = x / 2
    return x


def again(x):
    return x if x < 1 else again(x / 2)


@pytest.mark.parametrize("answer", [until, again])
def test_what_might_not_come_to_an_end_is_left_as_it_is(answer):
    assert mutants(answer) == ()


def test_each_is_made_once():
    bodies = [mistake.body for mistake in mutants(weighted)]
    assert len(set(bodies)) == len(bodies) > 30


# --- The place in the learner's own answer -----------------------------------------------------------------


def in_another_way(x, w, n):
    """No change of `weighted` gives this."""
    rows = (x @ w)[1:]
    return abs(x).max(axis=0).dot(w) / n - rows.sum()


def test_the_place_is_found_in_an_answer_of_another_form():
    assert said(in_another_way) == [
        "One small change makes your answer right, in the line `rows = (x @ w)[1:]`. Look at `(x @ w)[1:]`."
    ]


def a_loop_too_short(x, w, n):
    columns = range(1, n)
    return abs(x).max(axis=0) @ w / n - sum(w[i] * x[:, i].sum() for i in columns)


def test_the_kind_of_mistake_and_its_place_are_both_told():
    assert said(a_loop_too_short) == [
        "Somewhere, a loop leaves out its first turn.",
        "One small change makes your answer right, in the line `columns = range(1, n)`. Look at `range(1, n)`.",
    ]


def doubled_in_place(x, w, n):
    print("looking")
    x *= 1.0
    return 2 * weighted(x, w, n)


def test_what_a_search_runs_prints_nothing_more(capsys):
    said(doubled_in_place)
    assert capsys.readouterr().out.count("looking") == 3  # once a case


def test_of_words_the_place_may_be_chance():
    numbers = [(str(n), float(n), 3.0) for n in range(9)]
    exercise = make(answer=above, cases=lambda rng: numbers, mistakes="No.\n    return 3")
    assert exercise.report(from_there_on, 0).paragraphs == []


def from_there_on(x, limit):
    return x >= limit


def nearly_less(x, w, n):
    return weighted(x, w, n) - 1e-8


def nearly_as_much(x, w, n):
    return weighted(x, w, n) * 1.00000001


def nearly_rounded(x, w, n):
    return weighted(np.round(x, 8), w, n)


@pytest.mark.parametrize("answer", [nearly_less, nearly_as_much, nearly_rounded])
def test_where_only_the_last_digits_are_wrong_no_place_is_told(answer):
    (text,) = said(answer)
    assert re.match(r"All numbers agree with what they should be in about [789] digits\.", text), text


def too_late(x, w, n):
    total = (x @ w).sum()
    most = abs(x).max(axis=0)
    found = most @ w - total
    most = most / n
    return found


def test_two_steps_that_have_changed_places_are_told_one_below_the_other():
    assert said(too_late)[1:] == [
        "One small change makes your answer right: exchange these two steps.",
        "`found = most @ w - total`",
        "`most = most / n`",
    ]


def test_an_answer_with_a_while_is_looked_at_too():
    def sums(x, w, n):
        while abs(x).max() > 100:
            x = x / 2
        return abs(x).max(axis=0) @ w / n + (w * x.sum(axis=0)).sum()

    (place,) = said(sums)[1:]
    assert "Look at `abs(x).max(axis=0) @ w / n + (w * x.sum(axis=0)).sum()`." in place


def chosen(x, low, high):
    rng = np.random.default_rng(0)
    inside = (x > low) | (x < -high) & (x != 0.25)
    return np.where(inside, x, -np.inf).max() + x.var() + rng.choice(x, 3).sum() / 6


@pytest.mark.parametrize(
    "words",
    [
        "`high` stands in the place of `low`",
        "brackets stand in the wrong place",
        "all conditions must hold where one is enough",
        "n - 1 stands in the place of n",
        "what was drawn is not put back",
        "a number stands in the place of infinity",
        "a division by 6 is missing",
    ],
)
def test_what_else_anybody_confuses(words):
    assert f"Somewhere, {words}." in {mutant.sentence for mutant in mutants(chosen)}


def labelled(x):
    return [f"{x[0] + i} of {len(x)}" for i in range(3)]


def test_what_stands_in_an_f_string_is_left_alone():
    assert {mutant.piece for mutant in mutants(labelled)} == {"range(3)"}
