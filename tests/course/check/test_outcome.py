"""What an answer did: nothing yet, an error, a changed argument, memory taken."""

# ruff: noqa: PIE790 - gaps in answers are what is tested

from __future__ import annotations

import copy
import tracemalloc

import numpy as np
import pytest
from doubling import make, returning

from bert_course.check.exercise import NOT_ATTEMPTED
from bert_course.check.outcome import temporaries
from minigrad import Tensor

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]

# --- Not attempted ---------------------------------------------------------------------------------------


def ellipsis_body(x):
    """What to do."""
    ...


def ellipsis_returned(x):
    return ...


def pass_body(x):
    pass


def docstring_body(x):
    """What to do."""


def not_implemented(x):
    raise NotImplementedError


def gap_before_a_use(x):
    """The exercise asks for `result` alone."""
    y = x.copy()  # noqa: F841
    ...
    return result  # noqa: F821


def gap_for_a_value(x):
    result = ...
    return result * x


def gap_below_code(x):
    y = x.copy()  # noqa: F841
    ...


@pytest.mark.parametrize(
    "answer",
    [
        ellipsis_body,
        ellipsis_returned,
        pass_body,
        docstring_body,
        not_implemented,
        gap_before_a_use,
        gap_for_a_value,
        gap_below_code,
    ],
)
def test_an_empty_answer_gets_one_friendly_line_and_no_record(answer, told, folder):
    exercise = make()
    assert told(exercise, answer) == [f"double: {NOT_ATTEMPTED}"]
    assert list(folder.iterdir()) == []
    assert exercise.solution() is None


def test_a_gap_that_was_left_beside_a_right_answer_does_not_matter(told):
    def answer(x):
        ...
        return 2 * x

    assert told(make(), answer)[0].startswith("double: right.")


def test_an_error_of_ones_own_is_told_though_a_gap_is_left(told):
    def answer(x):
        y = x @ "text"
        ...
        return y

    assert "TypeError" in "".join(told(make(), answer))


def test_an_index_of_dots_is_no_gap(told):
    def answer(x):
        y = x[..., None]  # noqa: F841

    assert "it returned None" in "".join(told(make(), answer))


# --- Argument changed ------------------------------------------------------------------------------------


def test_a_changed_argument_is_named(told):
    def answer(x, y):
        y += x
        return y

    exercise = make(answer=lambda x, y: x + y, cases=lambda rng: [("two arrays", np.ones(3), np.ones(3))])
    lines = told(exercise, answer)
    assert lines[1].startswith("On two arrays: it changes `y`, which the caller still needs.")
    assert lines[-2] == "The numbers themselves are right."


@pytest.mark.parametrize(
    ("argument", "spoil"),
    [
        (np.ones(3), lambda x: x.__setitem__(0, 2)),
        (np.array(["a", "b"]), lambda x: x.__setitem__(0, "c")),
        (np.ones((2, 2)), lambda x: setattr(x, "shape", (4,))),
        ([1, 2], lambda x: x.append(3)),
        ([[1], [2]], lambda x: x[0].append(3)),
        ([[1], [2]], lambda x: x.__setitem__(0, 1)),
        ({"a": [1]}, lambda x: x["a"].append(2)),
        ({"a": 1}, lambda x: x.update(b=2)),
        ({"a": 1, "b": 2}, lambda x: x.update(a=x.pop("a"))),  # the order counts
        ([np.ones(2)], lambda x: x[0].fill(0)),
        ({1, 2}, lambda x: x.add(3)),
        (("a", [1]), lambda x: x[1].clear()),
    ],
)
def test_a_change_of_any_kind_is_seen(argument, spoil, told):
    exercise = returning(1.0, argument)

    def answer(x):
        spoil(x)
        return 1.0

    assert "`x`, which the caller still needs" in " ".join(told(exercise, answer))
    assert told(exercise, lambda x: 1.0)[0].startswith("double: right.")  # the case itself is as it was


def test_a_changed_tensor_is_seen(told):
    exercise = returning(1.0, Tensor(np.ones(3)))

    def answer(x):
        x.data[0] = 5
        return 1.0

    assert "`x`, which the caller still needs" in " ".join(told(exercise, answer))


@pytest.mark.parametrize(
    "argument", [np.array([1.0, np.nan]), float("nan"), np.random.default_rng(0), abs, None, np.array(["a"])]
)
def test_what_was_not_changed_is_not_named(argument, told):
    assert told(returning(1.0, argument), lambda x: 1.0)[0].startswith("double: right.")


def test_a_tensor_comes_with_or_without_gradient_as_in_the_case(told):
    given = ("two tensors", Tensor(np.ones(2), requires_grad=True), Tensor(np.ones(2)))
    exercise = make(answer=lambda a, b: 1.0, cases=lambda rng: [given])
    assert (
        told(exercise, lambda a, b: float(a.requires_grad and not b.requires_grad))[0]
        == "double: right. 1 case."
    )


def test_each_call_gets_its_own_random_generator(told):
    """Else the learner's answer would draw what the right one draws next."""
    exercise = make(
        answer=lambda rng, n: rng.random(n), cases=lambda _: [("draws", np.random.default_rng(3), 4)]
    )
    assert (
        told(exercise, lambda rng, n: np.array([rng.random() for _ in range(n)]))[0]
        == "double: right. 1 case."
    )


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda x: x.pop(), "it takes entries out of the list `x`"),
        (lambda x: x.append(1), "it adds entries to the list `x`"),
        (lambda x: x.__setitem__(0, 2 * x[0]), "it puts other things into the list `x`"),
        (lambda x: x[0].fill(3), "it writes into what is in the list `x`"),
    ],
)
def test_what_became_of_a_list_is_told(spoil, words, told):
    assert words in " ".join(told(returning(1.0, [np.ones(2), np.ones(3)]), lambda x: (spoil(x), 1.0)[1]))


def test_ways_to_change_a_list_are_different_mistakes(told):
    def twice_the_first(x):
        return 2 * x[0]

    mistakes = "You take out.\n    2 * x[0] -> 2 * x.pop(0)\n\nYou put in.\n    2 * x[0] -> (2 * x[0], x.append(1))[0]"
    cases = lambda rng: [("a list", [np.ones(2), np.ones(2)])]  # noqa: E731
    exercise = make(answer=twice_the_first, cases=cases, mistakes=mistakes)
    assert told(exercise, lambda x: x.pop() + 1)[1] == "You take out."
    assert told(exercise, lambda x: (x.append(1), x[0] + 1)[1])[1] == "You put in."


def test_an_argument_put_back_by_arithmetic_is_told_so(told):
    def answer(x):
        x += 0.1
        x -= 0.1
        return 1.0

    text = " ".join(told(returning(1.0, np.array([0.3, 0.7, 1 / 3])), answer))
    assert "it leaves a rounding error in `x`" in text


# --- The result in an argument ---------------------------------------------------------------------------


def fill(x, out):
    out[:] = 2 * x


@pytest.fixture
def into():
    """An exercise that writes twice x into `out`."""
    cases = [("a row", np.arange(3.0), np.full(3, np.nan))]
    return make(
        answer=fill, cases=lambda rng: copy.deepcopy(cases), into="out", mistakes="Added.\n    2 * x -> 2 + x"
    )


def test_what_was_written_is_judged(into, told):
    assert told(into, lambda x, out: np.add(x, x, out=out))[0].startswith("double: right.")
    assert told(into, lambda x, out: np.add(x, 2, out=out))[1] == "Added."


def test_who_writes_elsewhere_too_is_told_where_to_write(into, told):
    text = " ".join(told(into, lambda x, out: (np.multiply(x, 2, out=out), x.fill(0))))
    assert "it changes `x`, which the caller still needs. Write into `out` alone." in text


def test_nothing_written_is_wrong_or_not_attempted(into, told):
    def empty(x, out):
        """Nothing yet."""
        ...

    assert told(into, empty) == [f"double: {NOT_ATTEMPTED}"]
    assert "3 of 3 entries are NaN" in " ".join(told(into, lambda x, out: 2 * x))


# --- Memory ----------------------------------------------------------------------------------------------

X = np.zeros(200_000)


@pytest.fixture
def careful():
    """An exercise in which one array as large as x is enough."""
    probe = temporaries(lambda returned, given: given["x"], called="x", allowed="one is enough", most=1)
    return make(cases=lambda rng: [("a long array", X.copy())], probes=[probe])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: 2 * x, None),
        (lambda x: x + x, None),
        (lambda x: (2 * x, 2 * x, 2 * x)[0], "it takes 3 arrays as large as x at one time; one is enough."),
        (lambda x: (x.copy(), 2 * x)[1], "it takes 2 arrays as large as x at one time; one is enough."),
    ],
)
def test_arrays_in_memory_are_counted(answer, words, careful, told):
    text = " ".join(told(careful, answer))
    assert text.startswith("double: right.") if words is None else words in text


def test_less_than_an_array_is_told_as_a_share(told):
    probe = temporaries(lambda returned, given: given["x"], called="x", allowed="none is needed")
    exercise = make(
        answer=lambda x: float(x[0]), cases=lambda rng: [("a long array", X.copy())], probes=[probe]
    )
    assert told(exercise, lambda x: float(x[0]))[0].startswith("double: right.")
    text = " ".join(told(exercise, lambda x: float(x[: x.size // 2].copy()[0])))
    assert "it takes 0.5 times the memory of x at one time; none is needed." in text


def test_what_is_not_counted_is_told_too(told):
    probe = temporaries(
        lambda returned, given: given["x"], called="x", allowed="one is enough", most=1, beside=X.nbytes // 8
    )
    exercise = make(cases=lambda rng: [("a long array", X.copy())], probes=[probe])
    assert told(exercise, lambda x: (x[:20_000].copy(), 2 * x)[1])[0].startswith("double: right.")
    text = " ".join(told(exercise, lambda x: (x[:80_000].copy(), 2 * x)[1]))
    assert "it takes 1.4 times the memory of x at one time; one is enough." in text
    assert "it takes 3 arrays" in " ".join(told(exercise, lambda x: (2 * x, 2 * x, 2 * x)[0]))
    small = make(name="small", cases=lambda rng: [("a short array", X[:9].copy())], probes=[probe])
    assert told(small, lambda x: (X.copy(), 2 * x)[1])[0].startswith("small: right.")


def test_memory_is_measured_inside_a_measurement(careful, told):
    tracemalloc.start()
    try:
        assert told(careful, lambda x: 2 * x)[0].startswith("double: right.")
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_a_mistake_with_the_same_numbers_is_known_by_what_it_does_to_memory(told):
    probe = temporaries(lambda returned, given: given["x"], called="x", allowed="one is enough", most=1)
    mistakes = "You copy first.\n    2 * x -> (x.copy(), 2 * x)[1]\n\nYou halve.\n    2 * x -> x / 2"
    exercise = make(cases=lambda rng: [("a long array", X.copy())], probes=[probe], mistakes=mistakes)
    assert told(exercise, lambda x: (2 * x, 2 * x)[0])[1] == "You copy first."


def test_memory_is_told_besides_a_mistake_in_the_numbers(careful, told):
    exercise = make(
        name="twice",
        cases=lambda rng: [("a long array", X + 1)],
        probes=careful.probes,
        mistakes="Halved.\n    2 * x -> x / 2",
    )
    text = " ".join(told(exercise, lambda x: (x.copy(), x * 0.5)[1]))
    assert "Halved." in text
    assert "Besides, on a long array: it takes 2 arrays as large as x at one time; one is enough." in text
    assert "Besides" not in " ".join(told(exercise, lambda x: x * 0.5))
    assert "Besides" not in " ".join(told(exercise, lambda x: (x.copy(), x + x)[1]))
