"""The pages of what was graded: what they say, and that nothing of a student's is more than text there."""

from __future__ import annotations

import re

import pytest

from bert_course.check.exercise import EXERCISES
from bert_course.grade.pages import (
    NO_FUNCTION,
    UNKNOWN,
    instructor_page,
    misconceptions,
    page_name,
    student_page,
    write_pages,
)
from bert_course.grade.submissions import Refused
from bert_course.grade.table import Row
from bert_course.grade.verdict import (
    CRASHED,
    NO_CELL,
    NOT_ATTEMPTED,
    RIGHT,
    TIMED_OUT,
    UNGRADED,
    WRONG,
    Verdict,
)
from html_elements import Page

pytestmark = pytest.mark.no_arrays

NASTY = "<img src=x onerror=alert(1)>\"'&`</title><script>alert(1)</script>\0\ud800"
MISTAKES = list(dict.fromkeys(mistake.sentence for mistake in EXERCISES["attend"].known_mistakes))


def row(student, right, exercise="attend", stem="one_head", **parts):
    return Row(student, f"{student}/x.ipynb", stem, exercise, Verdict(right, **parts))


def wrong(student, *paragraphs):
    return row(student, WRONG, title="attend: not yet.", symptom="On one token.", paragraphs=list(paragraphs))


def said(text):
    (words,) = Page(text).texts("body")
    return " ".join(words.split())


def shown(sentence):
    """A sentence of a check as a page has it: without the marks around code."""
    return sentence.replace("`", "")


CLASS = [
    row("anna", RIGHT, title="attend: right.", more="5 cases."),
    wrong("ben", MISTAKES[0]),
    wrong("cleo", MISTAKES[0]),
    wrong("dora", "Two mistakes at once.", f"(1) {MISTAKES[1]}", f"(2) {MISTAKES[0]}"),
    wrong("emil", f"On 2 of the 3 wrong cases your answer gives what this mistake gives: {MISTAKES[2]}"),
    wrong("fay", "Every number is twice what it should be."),
    row("gil", WRONG, more="The answer cell of attend fails: NameError."),
    row("gus", TIMED_OUT, title="attend: no end in time."),
    row("hal", CRASHED, exercise="score_scale", title="score_scale: not judged."),
    row("anna", RIGHT, exercise="split_word", stem="wordpiece"),
]


def test_a_mistake_is_known_by_the_checks_sentence():
    found = [misconceptions("attend", one.verdict) for one in CLASS[1:7]]
    assert found == [
        [MISTAKES[0]],
        [MISTAKES[0]],
        [MISTAKES[0], MISTAKES[1]],
        [MISTAKES[2]],
        [UNKNOWN],
        [NO_FUNCTION],
    ]


def test_the_instructor_sees_the_share_that_is_right():
    page = Page(instructor_page(CLASS, []))
    words = said(instructor_page(CLASS, []))
    assert "9 students, 10 exercises: 10 answered, 2 right." in words
    assert [text for own, text in page.all("th", scope="row")] == ["split_word", "attend", "score_scale"]
    styles = [own["style"] for own, _ in page.all("span") if "style" in own]
    assert styles[:3] == ["width: 100.0%", "width: 12.5%", "width: 0.0%"]  # 1 of 8
    assert "Chapter 5: wordpiece" in words
    assert words.index("Chapter 5: wordpiece") < words.index("Chapter 7: one head")


def test_the_instructor_sees_how_many_made_each_mistake():
    found = [" ".join(text.split()) for text in Page(instructor_page(CLASS, [])).texts("details")]
    assert found == [
        "3 students of 8ben, cleo, dora",
        "1 student of 8dora",
        "1 student of 8emil",
        "1 student of 8gil: The answer cell of attend fails: NameError.",
        "1 student of 8fay: On one token.",
    ]
    words = said(instructor_page(CLASS, []))
    places = [words.index(shown(sentence)) for sentence in (*MISTAKES[:3], NO_FUNCTION, UNKNOWN)]
    assert places == sorted(places)


def test_the_instructor_sees_what_to_look_at():
    refused = [Refused("joe", "joe.zip", "it is damaged")]
    words = said(instructor_page(CLASS, refused))
    looked = words[words.index("To be looked at by hand") : words.index("Not graded")]
    assert "gus" in looked
    assert "hal" in looked
    assert "ben" not in looked
    assert "it is damaged" in words
    assert "looked at by hand" not in said(instructor_page(CLASS[:3], []))


def test_a_cell_that_is_not_there_is_looked_at_by_hand():
    words = said(instructor_page([row("ida", NO_CELL, title="cell 5, which defines it, is another one")], []))
    assert "To be looked at by hand" in words
    assert "cell 5, which defines it" in words


def test_the_instructor_sees_how_many_were_answered():
    rows = [row("anna", RIGHT), row("ben", NOT_ATTEMPTED), row("cleo", NO_CELL), wrong("dora", MISTAKES[0])]
    assert "4 students, 4 exercises: 2 answered, 1 right." in said(instructor_page(rows, []))


def test_an_interrupted_grading_says_so():
    words = "Grading was interrupted: 1 of 2 exercises have no verdict yet."
    assert words in said(instructor_page([row("anna", RIGHT), row("ben", UNGRADED)], []))
    assert "interrupted" not in said(instructor_page(CLASS, []))


def test_a_student_of_whom_nothing_was_read_is_among_the_students(tmp_path):
    refused = [
        Refused("Átila", "Átila.zip", "it is damaged"),
        Refused("(unknown)", "x.zip: /y", "it leads out"),
    ]
    index = write_pages(tmp_path, [row("anna", RIGHT), row("ben", RIGHT)], refused)
    page = Page(index.read_text(encoding="utf-8"))
    assert [text for _, text in page.all("a")][-3:] == ["anna", "Átila", "ben"]
    assert "3 students" in said(index.read_text(encoding="utf-8"))
    assert "nothing graded" in said(index.read_text(encoding="utf-8"))
    own = (tmp_path / "students" / page_name("Átila")).read_text(encoding="utf-8")
    assert "Átila.zip: it is damaged" in said(own)
    assert "exercises are right" not in said(own)
    assert len(list((tmp_path / "students").iterdir())) == 3


def test_a_student_sees_own_exercises_alone():
    text = student_page("dora", [CLASS[3]])
    assert "0 of 1 exercises are right." in said(text)
    assert shown(MISTAKES[0]) in said(text)
    for other in ("anna", "ben", "cleo"):
        assert other not in text


def test_a_student_sees_the_words_of_the_check():
    found = Verdict(
        WRONG, "attend: not yet.", "2 of 5 cases are right.", "Beware.", ["A sentence."], "On `one` case.",
        ["  q  1  2", "     3  4"], ["Besides."], "hello",
    )  # fmt: skip
    page = Page(student_page("anna", [Row("anna", "x", "one_head", "attend", found)]))
    words = " ".join(page.texts("body")[0].split())
    assert (
        "Beware. ✗ attend: not yet. 2 of 5 cases are right. A sentence. On one case. q 1 2 3 4 Besides."
        in words
    )
    assert page.texts("pre") == ["  q  1  2\n     3  4", "hello"]
    assert page.texts("code") == ["one"]


@pytest.mark.parametrize("kind", ["instructor", "student"])
def test_what_students_write_is_text(kind):
    parts = dict.fromkeys(("title", "more", "caution", "symptom", "printed"), NASTY)
    rows = [
        row(NASTY, right, **parts, values=[NASTY], paragraphs=[NASTY], besides=[NASTY])
        for right in (RIGHT, WRONG, CRASHED)
    ]
    refused = [Refused(NASTY, NASTY, NASTY)]
    text = instructor_page(rows, refused) if kind == "instructor" else student_page(NASTY, rows)
    page = Page(text)
    tags = {tag for tag, _, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "a" if kind == "student" else "form"}
    assert all(not name.startswith("on") for _, own, _ in page.elements for name in own)
    assert page.texts("title")[0].startswith("Exercises of")
    text.encode("utf-8")
    for own, _ in page.all("a"):
        assert re.fullmatch(r"students/[a-z0-9-]+\.html", own["href"])


def test_pages_ask_nothing_of_a_network():
    for text in (instructor_page(CLASS, []), student_page("anna", CLASS[:1])):
        assert not re.search(r"https?:|src=|@import|url\(", text)
        assert "default-src 'none'" in text


def test_students_of_one_name_but_for_signs_have_pages_of_their_own():
    names = [
        page_name(one) for one in ("Anna Lee (1)", "anna-lee-1", "../../etc/passwd", "…", "", "a" * 1000)
    ]
    assert len(set(names)) == 6
    assert all(re.fullmatch(r"[a-z0-9-]+\.html", name) for name in names)
    assert max(map(len, names)) < 80


def test_pages_of_who_is_gone_go(tmp_path):
    write_pages(tmp_path, CLASS, [])
    assert len(list((tmp_path / "students").iterdir())) == 9
    index = write_pages(tmp_path, CLASS[:2], [])
    assert len(list((tmp_path / "students").iterdir())) == 2
    for own, _ in Page(index.read_text(encoding="utf-8")).all("a"):
        assert (tmp_path / own["href"]).is_file()
