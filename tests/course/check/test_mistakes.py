"""Wrong answers as edits of the right one: read from a text, made, and made in pairs."""

from __future__ import annotations

import pytest

from bert_course.check.mistakes import Mistake, build, pairs, parse, source_of

pytestmark = pytest.mark.no_arrays


def mean(x, y):
    total = x + y  # a comment
    return total / 2


TEXT = """
The sum is asked for
by its half.
    / 2 ->
    total / 2 -> total / 3 ; x + y -> y + x

That is the larger one.
    if x > y:
        return x
    return y

    return max(x, y)

You subtract.
    + -> -
"""


def test_a_text_is_read():
    assert parse(TEXT) == [
        Mistake("The sum is asked for by its half.", edits=(("/ 2", ""),)),
        Mistake("The sum is asked for by its half.", edits=(("total / 2", "total / 3"), ("x + y", "y + x"))),
        Mistake("That is the larger one.", body="if x > y:\n    return x\nreturn y"),
        Mistake("That is the larger one.", body="return max(x, y)"),
        Mistake("You subtract.", edits=(("+", "-"),)),
    ]


def test_blank_lines_stand_between_bodies_alone():
    text = "\n".join(line for line in TEXT.splitlines() if line)
    close = parse(text.replace("    return y\n", "    return y\n\n"))
    assert close == parse(TEXT)


def test_an_indented_text_is_read_alike():
    assert parse("\n    A.\n        x -> y\n") == [Mistake("A.", edits=(("x", "y"),))]


def test_one_place_can_be_wrong_in_several_ways():
    assert parse("A.\n    x -> y || z || ") == [Mistake("A.", ((("x", new)),)) for new in ("y", "z", "")]
    assert parse("A.\n    a -> b ; x -> y || z") == [
        Mistake("A.", (("a", "b"), ("x", "y"))),
        Mistake("A.", (("a", "b"), ("x", "z"))),
    ]


def test_an_id_is_no_part_of_its_sentence():
    text = (
        "[no-half] The sum is asked for\nby its half.\n    / 2 ->\n    2 -> 3\n[CLS] is missing.\n    + -> -"
    )
    assert parse(text) == [
        Mistake("The sum is asked for by its half.", edits=(("/ 2", ""),), id="no-half"),
        Mistake("The sum is asked for by its half.", edits=(("2", "3"),), id="no-half"),
        Mistake("[CLS] is missing.", edits=(("+", "-"),)),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A sentence.", "no wrong answer stands below 'A sentence.'"),
        ("One.\n\nTwo.\n    a -> b", "no wrong answer stands below 'One.'"),
        ("    a -> b\nOne.\n    c -> d", "no sentence stands above 'a -> b'"),
        ("[one]\n    a -> b", "no sentence stands above 'a -> b'"),
        ("[one] A.\n    a -> b\n[one] B.\n    c -> d", r"\[one\] stands twice, before 'A.' and 'B.'"),
        ("[one] A.\n    a -> b\n\n[one] A.\n    c -> d", r"\[one\] stands twice, before 'A.' and 'A.'"),
        ("[no_half] A.\n    a -> b", r"not \[no_half\] of '\[no_half\] A.'"),
        ("[-half] A.\n    a -> b", r"small letters with hyphens between them, not \[-half\]"),
    ],
)
def test_a_text_that_lacks_something_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse(text)


def test_each_mistake_makes_its_answer():
    answers = [build(mean, mistake) for mistake in parse(TEXT)]
    assert [answer(3, 6) for answer in answers] == [9, 3, 6, 6, -1.5]
    assert mean(3, 6) == 4.5


def test_a_wrong_answer_may_call_the_right_one():
    assert build(mean, Mistake("Twice.", body="return 2 * right(x, y)"))(3, 6) == 9


def test_an_edit_changes_every_place():
    assert build(mean, Mistake("Renamed.", edits=(("total", "whole"),)))(1, 2) == 1.5


@pytest.mark.parametrize(
    "edits", [(("nowhere", "x"),), (("x + y", "x"), ("+ y", "y"))], ids=["absent", "overlapping"]
)
def test_an_edit_that_does_not_apply_is_refused(edits):
    with pytest.raises(ValueError, match="mean: an edit finds nothing, or two edits overlap"):
        build(mean, Mistake("Wrong.", edits=edits))


def test_an_edit_that_is_no_python_is_refused():
    with pytest.raises(SyntaxError):
        build(mean, Mistake("Wrong.", edits=(("total / 2", "total /"),)))


def test_mistakes_of_different_places_are_paired():
    mistakes = parse("A.\n    x + y -> x - y\n\nB.\n    / 2 -> / 4\n\nC.\n    + y -> * y\n\nA.\n    2 -> 8")
    made = {(one.sentence, other.sentence): answer(3, 6) for one, other, answer in pairs(mean, mistakes)}
    assert made == {("A.", "B."): -0.75, ("B.", "C."): 4.5, ("C.", "A."): 2.25}


def test_an_edit_goes_into_a_body():
    mistakes = parse("A.\n    return max(x, y) / 2\n\nB.\n    / 2 -> / 4\n\nC.\n    return min(x, y)")
    assert [(one.sentence, other.sentence, answer(3, 6)) for one, other, answer in pairs(mean, mistakes)] == [
        ("A.", "B.", 1.5)
    ]


def test_a_pair_that_is_no_python_is_left_out():
    mistakes = [Mistake("A.", edits=(("total / 2", "(total / 2"),)), Mistake("B.", edits=(("x + y", "x"),))]
    assert list(pairs(mean, mistakes)) == []


def decorated(text):
    return lambda function: function


@decorated("""
def not_this_one():
""")
def this_one():
    return 1


def test_the_source_begins_with_def():
    assert source_of(this_one) == "def this_one():\n    return 1"
