"""Files as people have them: what is read of each, and that what is wrong is named with its line."""

from __future__ import annotations

import json
import time
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


def test_a_table_of_one_column_and_an_index(tmp_path):
    """As pandas writes it, and as spreadsheets leave empty columns and lines."""
    assert rows(tmp_path, "x.tsv", "\ttext\n0\tgood, but long\n") == [
        (2, {"": "0", "text": "good, but long"})
    ]
    assert rows(tmp_path, "x.tsv", "text\ngood, but long\n") == [(2, {"text": "good, but long"})]
    assert rows(tmp_path, "x.csv", "text;label;;\na;b;;\n;;;\n") == [(2, {"text": "a", "label": "b", "": ""})]


def test_tasks_of_glue_by_their_columns(tmp_path):
    def inputs(header, task, row):
        examples = read_examples(write(tmp_path, "dev.tsv", f"{header}\n{row}\n"), need_targets=False)
        assert examples.task == task
        return examples.rows[0]

    texts = {"id": "3", "text": "a b", "text_pair": "c d", "label": "1"}
    assert inputs("index\tquestion\tsentence\tlabel", "pairs", "3\ta b\tc d\t1") == texts  # QNLI
    assert inputs("id\tquestion1\tquestion2\tis_duplicate", "pairs", "3\ta b\tc d\t1") == texts  # QQP
    mnli = "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label"
    assert inputs(mnli, "pairs", "3\tfiction\ta b\tc d\t0\t1") == texts
    assert inputs("sentence\tlabel", "classify", "a b\t-1") == {
        "text": "a b"
    }  # a test, whose labels are not told
    tagged = {"tokens": ["EU", "rejects"], "pos_tags": [22, 42], "ner_tags": [3, 0]}
    examples = read_examples(write(tmp_path, "conll.jsonl", json.dumps(tagged)))
    assert examples.rows == [{"tokens": ["EU", "rejects"], "tags": ["3", "0"]}]


def test_all_rows_say_what_columns_there_are(tmp_path):
    content = '{"text": "a", "label": "x"}\n{"text": "b", "text_pair": "c", "label": "y"}\n'
    with pytest.raises(ExampleError, match="column 'text_pair': it is missing; there are text, label"):
        read_examples(write(tmp_path, "rows.jsonl", content))


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"text": "a"}]\n[{"text": "b"}]', "line 1: it is no JSON: expected the end of the list"),
        ('[{"text": "a"},]', "line 1: it is no JSON"),
        ('[{"text": "a"}', "line 1: it is no JSON: expected , or ] after this object"),
        ('{"text": "a"}\n{"text": "b"}', "and more after it; a file with an object a line is .jsonl"),
        ('{"data": []} {"data": []}', "and more after it; a file with an object a line is .jsonl"),
    ],
)
def test_nothing_stands_after_the_end(tmp_path, content, message):
    with pytest.raises(ExampleError) as caught:
        rows(tmp_path, "rows.json", content)
    assert message in str(caught.value)


def test_a_long_list_is_read_in_time(tmp_path):
    """Processor time: it grew with the square of the rows."""
    content = json.dumps([{"text": "word " * 40, "label": 1}] * 20_000)
    started = time.process_time()
    assert len(rows(tmp_path, "rows.json", content)) == 20_000
    assert time.process_time() - started < 5


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


def test_a_question_of_a_test_file_has_no_answer_to_be_scored_by(tmp_path):
    path = write(tmp_path, "test.json", squad({"id": 1, "question": "who ?"}))
    examples = read_examples(path, need_targets=False)
    assert (examples.has_targets, examples.rows) == (
        False,
        [{"id": 1, "question": "who ?", "context": "it was mary"}],
    )
    with pytest.raises(ExampleError, match="row 1, column 'answer': it is missing"):
        read_examples(path)


@pytest.mark.parametrize(
    "answers",
    [
        {"text": ["mary"]},
        {},
        {"value": "mary"},
        "mary",
        5,
        ["mary"],
        [{"text": "mary"}],
        {"text": "mary", "answer_start": [7]},
        {"text": ["mary", "it"], "answer_start": [7]},
        {"text": ["mary"], "answer_start": None},
    ],
)
def test_answers_that_are_not_understood(tmp_path, answers):
    row = {"question": "who ?", "context": "it was mary", "answers": answers}
    expected = (
        "line 1, column 'answers': expected text and answer_start of each answer, or a list of each, got"
    )
    with pytest.raises(ExampleError, match=expected):
        read_examples(write(tmp_path, "rows.jsonl", json.dumps(row)))
    beside = {**row, "answer": "mary", "answer_start": 7}  # then it is a column of the file's own
    assert "answers" not in read_examples(write(tmp_path, "rows.jsonl", json.dumps(beside))).rows[0]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"answers": MARY[:1], "is_impossible": True}, "question 1: is_impossible is True, with 1 answers"),
        ({"answers": [], "is_impossible": False}, "question 1: is_impossible is False, with 0 answers"),
        ({"answers": [*MARY, {"text": "it", "answer_start": 999}]}, "has 'it', got 999, where it has ''"),
        ({"answers": [*MARY, {"text": "", "answer_start": 0}]}, "expected where the context has '', got 0"),
        ({"answers": [*MARY, {"text": None, "answer_start": 0}]}, "expected where the context has None, got 0"),
        ({"answers": [{"text": "it", "answer_start": "x"}]}, "'answer_start': expected the number of characters"),
    ],
)  # fmt: skip
def test_questions_that_contradict_themselves(tmp_path, question, message):
    with pytest.raises(ExampleError) as caught:
        read_examples(write(tmp_path, "dev.json", squad({"id": 1, "question": "who ?", **question})))
    assert message in str(caught.value)


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
        ("no.csv", "text;text\na;b\n", "its first line, the names of the columns, has 'text' twice"),
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


def test_comments_and_counted_words(tmp_path):
    content = "# id 1 domain=train\nParis X X B-LOC\n# X X O\n\n# sent_id = 2\n# X X O\nis X X O\n"
    assert [row["tokens"] for _, row in rows(tmp_path, "x.conll", content)] == [["Paris", "#"], ["#", "is"]]
    with pytest.raises(ExampleError, match="line 2: expected a word in the first column, which counts them"):
        rows(tmp_path, "x.conll", "# sent_id = 1\n1\tSchartau\tB-PER\tO\n2\tsagte\tO\tO\n")
    for content in (
        "# NN\nis VBZ\n",
        "it PRP\n\n# comment\nis VBZ\n",
    ):  # a word that is lost would not be missed
        with pytest.raises(
            ExampleError, match=r"is this a comment, or the word #. Take it out if it is a comment: '# "
        ):
            rows(tmp_path, "x.conll", content)
    plain = rows(tmp_path, "x.conll", "# a comment of words\nit PRP\n")
    assert plain == [(2, {"tokens": ["it"], "tags": ["PRP"]})]
    assert rows(tmp_path, "x.conll", "1 O\n2 O\n") == [(1, {"tokens": ["1", "2"], "tags": ["O", "O"]})]
