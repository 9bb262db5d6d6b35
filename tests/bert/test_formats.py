"""Files as people have them: what is read of each, and that what is wrong is named with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minigrad.bert.examples import read_examples
from minigrad.bert.formats import ExampleError, read_rows

pytestmark = pytest.mark.no_arrays

ROWS = [{"text": "a, b; c|d", "label": "1"}, {"text": 'say "no"', "label": "2"}]


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_bytes(content.encode())
    return path


def rows(folder: Path, name: str, content: str) -> list[tuple[int, dict[str, object]]]:
    return read_rows(write(folder, name, content))


# --- Tables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.csv", "rows.TSV"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_separator_is_noticed(tmp_path, name, separator, end):
    lines = ["text,label", '"a, b; c|d",1', '"say ""no""",2', ""]
    text = end.join(
        [lines[0].replace(",", separator), *(separator.join(one.rsplit(",", 1)) for one in lines[1:3]), ""]
    )
    assert rows(tmp_path, name, text) == [(2, ROWS[0]), (3, ROWS[1])]


def test_a_first_line_may_name_the_separator(tmp_path):
    assert rows(tmp_path, "rows.csv", "sep=;\r\ntext;label,or so\r\na;b\r\n") == [
        (3, {"text": "a", "label,or so": "b"})
    ]


def test_a_stray_tab_parts_nothing(tmp_path):
    assert rows(tmp_path, "rows.csv", "text,label\t\na\tb,c\n") == [(2, {"text": "a\tb", "label": "c"})]


def test_a_question_has_no_line(tmp_path):
    wrong = {"question": "who ?", "answers": [{"text": "mary", "answer_start": 3}]}
    with pytest.raises(
        ExampleError, match=r"dev.json, row 1, column 'answer_start': expected where the context has"
    ):
        read_examples(write(tmp_path, "dev.json", squad(wrong)))


def test_a_table_of_one_column(tmp_path):
    assert rows(tmp_path, "rows.csv", "text\nsome words\n") == [(2, {"text": "some words"})]


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        ('"Yes" he said', '"Yes" he said'),  # GLUE's: no quotes of a table
        ('"open', '"open'),
        ('a "b" c', 'a "b" c'),
        ('"a ""b"" c"', 'a "b" c'),  # pandas'
        ('"all of it"', "all of it"),
    ],
)
def test_quotes_between_tabs(tmp_path, cell, read):
    assert rows(tmp_path, "dev.tsv", f"sentence\tlabel\n{cell}\t1\n") == [
        (2, {"sentence": read, "label": "1"})
    ]


def test_tables_of_glue(tmp_path):
    pair = 'index\tsentence1\tsentence2\tlabel\n7\tOne.\t"Two," he said.\tentailment\n'
    examples = read_examples(write(tmp_path, "train.tsv", pair))
    assert examples.task == "pairs"
    assert read_examples(write(tmp_path, "crlf.tsv", pair.replace("\n", "\r\n"))).rows == examples.rows
    assert examples.rows == [
        {"id": "7", "text": "One.", "text_pair": '"Two," he said.', "label": "entailment"}
    ]
    assert read_examples(write(tmp_path, "dev.tsv", "sentence\tlabel\nfine\t1\n")).rows == [
        {"text": "fine", "label": "1"}
    ]
    unlabelled = read_examples(write(tmp_path, "test.tsv", "index\tsentence\n0\tfine\n"), need_targets=False)
    assert (unlabelled.rows, unlabelled.has_targets) == ([{"id": "0", "text": "fine"}], False)


def test_columns_that_are_named(tmp_path):
    path = write(tmp_path, "reviews.csv", "text,review,stars,label\nx,good,5,z\n")
    examples = read_examples(path, named={"text": "review", "label": "stars"})
    assert examples.rows == [{"text": "good", "label": "5"}]
    with pytest.raises(
        ExampleError, match="has no column 'rating' for label; there are text, review, stars, label"
    ):
        read_examples(path, named={"label": "rating"})
    lacking = write(tmp_path, "reviews.csv", "review;stars\nx;\n")
    with pytest.raises(
        ExampleError, match=r"row 1 \(line 2\), column 'stars': expected a text or an integer, got ''"
    ):
        read_examples(lacking, named={"text": "review", "label": "stars"})


# --- JSON ------------------------------------------------------------------------------------------------


def test_a_list_of_objects(tmp_path):
    text = '\n [\n{"text": "a]",\n "label": 1},\n\n {"text": "b", "label": 2} ]\n'
    assert rows(tmp_path, "rows.json", text) == [
        (3, {"text": "a]", "label": 1}),
        (6, {"text": "b", "label": 2}),
    ]
    assert rows(tmp_path, "rows.json", json.dumps([{"a": n} for n in range(50)])) == [
        (1, {"a": n}) for n in range(50)
    ]


def squad(*questions: dict[str, object]) -> str:
    return json.dumps(
        {
            "version": "1.1",
            "data": [{"title": "t", "paragraphs": [{"context": "it was mary", "qas": questions}]}],
        }
    )


MARY = [{"text": "mary", "answer_start": 7}, {"text": "was mary", "answer_start": 3}]


def test_questions_of_squad(tmp_path):
    path = write(tmp_path, "dev.json", squad({"id": "x", "question": "who ?", "answers": MARY}))
    examples = read_examples(path)
    assert examples.task == "qa"
    row = {"question": "who ?", "context": "it was mary", "answer": "mary", "answer_start": 7}
    assert examples.rows == [{"id": "x", **row, "answers": ["mary", "was mary"]}]
    # and as datasets' to_json writes them
    answers = {"text": ["mary", "was mary"], "answer_start": [7, 3]}
    line = json.dumps({"id": "x", "question": "who ?", "context": "it was mary", "answers": answers})
    assert read_examples(write(tmp_path, "dev.jsonl", line)).rows == examples.rows


def test_questions_without_an_answer(tmp_path):
    questions = (
        {"id": 1, "question": "who ?", "answers": MARY},
        {"id": 2, "question": "why ?", "is_impossible": True},
    )
    examples = read_examples(write(tmp_path, "train.json", squad(*questions)))
    assert examples.rows[1] == {
        "id": 2,
        "question": "why ?",
        "context": "it was mary",
        "answer": "",
        "answer_start": 0,
    }
    row = {"question": "why ?", "context": "it was mary", "answer": "", "answer_start": 0}
    with pytest.raises(ExampleError, match="column 'answer': expected a text, got ''"):  # which may be a slip
        read_examples(write(tmp_path, "train.jsonl", json.dumps(row)))


# --- Tagged words ----------------------------------------------------------------------------------------

CONLL = """-DOCSTART- -X- -X- O

EU NNP I-NP B-ORG
rejects VBZ I-VP O

Peter NNP I-NP B-PER
"""


def test_sentences_of_conll(tmp_path):
    found = [
        (3, {"tokens": ["EU", "rejects"], "tags": ["B-ORG", "O"]}),
        (6, {"tokens": ["Peter"], "tags": ["B-PER"]}),
    ]
    assert rows(tmp_path, "train.conll", CONLL) == found
    assert rows(tmp_path, "train.bio", CONLL.replace(" ", "\t").replace("\n", "\r\n")) == found
    assert read_examples(write(tmp_path, "train.iob", CONLL)).task == "tag"


def test_a_word_may_have_a_space_between_tabs(tmp_path):
    assert rows(tmp_path, "a.conll", "1 000\tO\nx\xa0y\tB-A") == [
        (1, {"tokens": ["1 000", "x\xa0y"], "tags": ["O", "B-A"]})
    ]


def test_words_without_tags(tmp_path):
    examples = read_examples(
        write(tmp_path, "test.conll", "one\ntwo\n\n\nthree\n"), "tag", need_targets=False
    )
    assert [row["tokens"] for row in examples.rows] == [["one", "two"], ["three"]]
    assert examples.lines == [1, 5]


# --- What is wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.tsv", "text\tlabel\na\tb\nc\n", "no.tsv, line 3: expected 2 cells, as in the header, got 1"),
        ("no.csv", "text;label\na;b;c\n", 'got 3; a text with a semicolon or a line break in it stands in "quotes"'),
        ("no.csv", "text;text\na;b\n", "its first line has the column 'text' twice"),
        ("no.json", "", "no.json, line 1: it is no JSON"),
        ("no.json", "[]", "no.json has no rows"),
        ("no.json", '[{"a": 1}\n{"a": 2}]', "line 1: it is no JSON: expected , or ] after this object"),
        ("no.json", '[{"a": 1},\n {"a": }]', "no.json, line 2: it is no JSON"),
        ("no.json", '[{"a": 1},]', "line 1: it is no JSON"),
        ("no.json", '[{"a": 1}, 5]', "line 1: expected an object such as"),
        ("no.json", '{"text": "a"}', 'expected a list of objects, or "data" with paragraphs and questions as'),
        ("no.json", '{"data": [{"paragraphs": [{"qas": []}, {"context": "a"}]}]}', "text 1 of its data: expected"),
        ("no.jsonl", '{"a": 1} {"a": 2}', "line 1: it is no JSON: something comes after the object"),
        ("no.conll", "a O\nb X O\n", "no.conll, line 2: expected 2 columns, as in the lines before, got 3: 'b X O'"),
        ("no.conll", "a O\n\tO\n", "line 2: expected 2 columns, as in the lines before, got 1"),
        ("no.conll", "-DOCSTART- O\n\n", "no.conll has no rows"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, name, content, message):
    with pytest.raises(ExampleError) as caught:
        read_examples(write(tmp_path, name, content))
    assert message in str(caught.value)
