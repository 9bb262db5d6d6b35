"""Small changes of an answer's source: which there are, and what is said where one puts an answer right."""

from __future__ import annotations

import ast
import inspect
import linecache
import re

import numpy as np
import pytest
from doubling import make

from bert_course.check.mistakes import source_of
from bert_course.check.mutants import mutants

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]


def weighted(x, w, n):
    """π ≠ 3: the columns of a node count bytes."""
    total = 0.0
    for i in range(n):
        total += w[i] * x[:, i].sum()
    best = np.where(x > 0, x, -x).max(axis=0)
    return best @ w / n - total


def cases(rng):
    for n in (2, 3, 5):
        yield f"n = {n}", rng.standard_normal((4, n)), rng.standard_normal(n), n


def said(answer, right=weighted, of=cases):
    """What a check of `right` says of an answer: the first paragraph after the verdict."""
    return make(answer=right, cases=of, mistakes="Unlike all.\n    return 17.25").report(answer, 0).paragraphs


# What may stand in a source, and what one change makes of it.
CHANGES = [
    ("best @ w", "w @ best"),
    ("best @ w", "best @ w.T"),
    ("x / n", "x * n"),
    ("x * n", "x"),
    ("x + n", "x - n"),
    ("x - n", "n - x"),
    ("x // n", "-(-x // n)"),
    ("x ** n", "x"),
    ("x < n", "x <= n"),
    ("x == n", "x != n"),
    ("(x < n) & (x > w)", "(x < n) | (x > w)"),
    ("x and n", "x or n"),
    ("x and n", "n"),
    ("(x > n) | (x < w) & best", "((x > n) | (x < w)) & best"),
    ("x.sum()", "x.mean()"),
    ("np.argmax(x)", "np.argmin(x)"),
    ("np.sqrt(x)", "x"),
    ("np.log(x)", "np.log2(x)"),
    ("max(x, n)", "n"),
    ("np.where(x > 0, x, n)", "np.where(x > 0, n, x)"),
    ("x.var()", "x.var(ddof=1)"),
    ("rng.choice(x, 3)", "rng.choice(x, 3, replace=False)"),
    ("range(n)", "range(0, n - 1)"),
    ("range(n)", "range(0 + 1, n)"),
    ("range(1, n)", "range(1 - 1, n)"),
    ("x[0]", "x[-1]"),
    ("x[w, 1:]", "x[w, :]"),
    ("x.T", "x"),
    ("-x", "x"),
    ("not x", "x"),
    ("x.max(axis=0)", "x.max(axis=1)"),
    ("sorted(x, reverse=True)", "sorted(x, reverse=False)"),
    ("np.inf", "1e9"),
    ("[a for a in w]", "[a for a in list(w)[1:]]"),
    ("x", "n + 1"),
    ("x", "w"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_what_one_change_makes(old, new):
    (whole,) = {ast.unparse(ast.parse(f"return {new}")), ast.unparse(ast.parse(f"return ({new})"))}
    function = defined(f"def f(x, w, n, best, rng):\n    return {old}\n")
    made = {ast.unparse(ast.parse(mutant.body)) for mutant in mutants(function)}
    assert whole in made or (old, new) == ("x", "n + 1")
    assert ("return n + 1" in made) == (old == "x + 1")


@pytest.mark.parametrize(
    ("old", "new"), [("total += w", "total = w"), ("total -= w", "total += w"), ("total = w", "total += w")]
)
def test_what_one_change_makes_of_statements(old, new):
    function = defined(f"def f(total, w, n):\n    {old}\n    return total\n")
    assert f"{new}\n    return total".replace("\n    ", "\n") in {
        mutant.body.replace("\n    ", "\n") for mutant in mutants(function)
    }


def defined(source):
    """A function whose source can be found."""
    file = f"<test {hash(source)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    scope = {"np": np}
    exec(compile(source, file, "exec"), scope)
    return next(value for value in scope.values() if inspect.isfunction(value))


def edited(function, change):
    """A function with a piece of its source changed."""
    source = source_of(function)
    assert source.count(change[0]) == 1
    return defined(source.replace(*change))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("total += ", "total = "), "total = w[i] * x[:, i].sum()"),
        (("range(n)", "range(n - 1)"), "for i in range(n - 1):"),
        (("range(n)", "range(1, n)"), "for i in range(1, n):"),
        (("x, -x)", "-x, x)"), "best = np.where(x > 0, -x, x).max(axis=0)"),
        (("best @ w / n", "best @ w / (n - 1)"), "return best @ w / (n - 1) - total"),
    ],
)
def test_the_line_of_a_mistake_is_found(change, line):
    assert f"in the line `{line}`" in " ".join(said(edited(weighted, change)))


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


def test_what_a_loop_goes_over_is_found():
    assert said(a_loop_too_short) == [
        "One small change makes your answer right, in the line `columns = range(1, n)`. Look at `range(1, n)`."
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


def test_an_answer_with_a_while_is_looked_at_too():
    def sums(x, w, n):
        while abs(x).max() > 100:
            x = x / 2
        return abs(x).max(axis=0) @ w / n + (w * x.sum(axis=0)).sum()

    (place,) = said(sums)
    assert "Look at `abs(x).max(axis=0) @ w / n + (w * x.sum(axis=0)).sum()`." in place


def labelled(x):
    return [f"{x[0] + i} of {len(x)}" for i in range(3)]


def test_what_stands_in_an_f_string_is_left_alone():
    assert {mutant.piece for mutant in mutants(labelled)} == {"range(3)"}
