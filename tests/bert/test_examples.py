"""Files of examples: what is read, and that whatever is wrong is named with its row and column."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
from pathlib import Path

import pytest

from minigrad.bert.examples import NUMBERS, ExampleError, from_texts, label_numbers, read_examples
from minigrad.text.corpus import CorpusError

pytestmark = pytest.mark.no_arrays


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def jsonl(folder: Path, *rows: object) -> Path:
    return write(folder, "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


QUESTION = {"question": "who ?", "context": "it was mary", "answer": "mary", "answer_start": 7}
TAGGED = {"tokens": ["it", "was", "mary"], "tags": ["O", "O", "B-PER"]}


# --- What is read ----------------------------------------------------------------------------------------


def test_a_csv_file(tmp_path):
    text = '\ufefftext, label,more\n"one, two",yes,x\n\n"three\n""four""", no ,\n'
    examples = read_examples(write(tmp_path, "rows.csv", text))
    assert examples.task == "classify"
    assert examples.rows == [{"text": "one, two", "label": "yes"}, {"text": 'three\n"four"', "label": "no"}]
    assert examples.lines == [2, 4]
    assert examples.has_targets
    windows = read_examples(write(tmp_path, "ROWS.CSV", text.replace("\n", "\r\n")))
    assert [row["label"] for row in windows.rows] == ["yes", "no"]


def test_a_jsonl_file(tmp_path):
    text = '{"text": "one", "label": 1}\n\n{"label": "2", "text": "two\\n", "id": null}'
    examples = read_examples(write(tmp_path, "rows.jsonl", text))
    assert examples.rows == [{"text": "one", "label": "1"}, {"id": None, "text": "two\n", "label": "2"}]
    assert examples.lines == [1, 3]


def test_of_the_other_columns_the_id_is_kept(tmp_path):
    rows = {"id": 7, "text": "a", "text_pair": "b", "label": "c", "more": "d"}, {"text": "a", "label": "c"}
    examples = read_examples(jsonl(tmp_path, *rows), "classify")
    assert examples.rows == [{"id": 7, "text": "a", "label": "c"}, {"text": "a", "label": "c"}]
    assert examples.ignored == ("text_pair", "more")


def test_the_columns_say_the_task(tmp_path):
    pair = {"text": "a", "text_pair": "b", "label": "c"}
    for task, row in (
        ("qa", QUESTION),
        ("tag", TAGGED),
        ("pairs", pair),
        ("classify", {"text": "a", "label": "c"}),
    ):
        examples = read_examples(jsonl(tmp_path, {**row, "else": 1}))
        assert (examples.task, examples.rows) == (task, [row])
    assert read_examples(jsonl(tmp_path, pair), "classify").rows == [{"text": "a", "label": "c"}]


def test_places_of_answers_in_csv_are_texts(tmp_path):
    text = "question,context,answer,answer_start\nwho ?,it was mary,mary, 7\n"
    assert read_examples(write(tmp_path, "rows.csv", text)).rows == [QUESTION]


def test_without_answers(tmp_path):
    path = jsonl(tmp_path, {"question": "who ?", "context": "it was mary"})
    examples = read_examples(path, need_targets=False)
    assert (examples.has_targets, examples.rows) == (False, [{"question": "who ?", "context": "it was mary"}])
    assert read_examples(jsonl(tmp_path, QUESTION), need_targets=False).has_targets
    assert from_texts("tag", ["mary was  here"]).rows == [{"tokens": ["mary", "was", "here"]}]
    assert from_texts("tag", ["mary", "is here"]).rows == [{"tokens": ["mary"]}, {"tokens": ["is", "here"]}]
    assert from_texts("classify", ["a", "b", "c"]).rows == [{"text": "a"}, {"text": "b"}, {"text": "c"}]
    assert from_texts("qa", ["who ?", "mary"]).rows == [{"question": "who ?", "context": "mary"}]
    with pytest.raises(ExampleError, match="pairs reads two texts, text and text_pair; got 3"):
        from_texts("pairs", ["a", "b", "c"])
    with pytest.raises(ExampleError, match=r"text: expected a text, got 'a\\udcff'"):
        from_texts("classify", ["a\udcff"])
    with pytest.raises(ExampleError, match="text_pair: expected a text, got ' '"):
        from_texts("pairs", ["a", " "])


def test_names_of_classes(tmp_path):
    def names(*labels):
        return label_numbers(read_examples(jsonl(tmp_path, *({"text": "a", "label": one} for one in labels))))

    assert names("b", "a", "b") == {0: "a", 1: "b"}
    assert names(10, 9, -1) == {0: "-1", 1: "9", 2: "10"}
    assert names("10", "9", "x") == {0: "10", 1: "9", 2: "x"}
    assert names("2" * 5000, "1") == {0: "1", 1: "2" * 5000}  # more digits than Python makes an integer of
    assert label_numbers(read_examples(jsonl(tmp_path, TAGGED))) == {0: "B-PER", 1: "O"}
    assert label_numbers(read_examples(jsonl(tmp_path, QUESTION))) == {0: "LABEL_0", 1: "LABEL_1"}
    with pytest.raises(
        ExampleError, match=r"column 'label': expected at least two that differ, but all are 'a'"
    ):
        names("a", "a")


def test_labels_that_are_numbers(tmp_path):
    def task(*labels, pair=False, **options):
        more = {"text_pair": "b"} if pair else {}
        found = read_examples(
            jsonl(tmp_path, *({"text": "a", **more, "label": x} for x in labels)), **options
        )
        assert label_numbers(found) == ({0: "LABEL_0"} if found.task in NUMBERS else {0: "1", 1: "2"})
        return found.task, [row["label"] for row in found.rows]

    assert task(1, "2") == ("classify", ["1", "2"])
    assert task(1, "2", task="regression") == ("regression", [1.0, 2.0])
    assert task("1", "-2.5e1", " +.5 ") == ("regression", [1.0, -25.0, 0.5])
    assert task(1.5, 2.0, pair=True) == ("similarity", [1.5, 2.0])
    assert task(1.0, 2.0, "1", pair=True) == ("pairs", ["1", "2", "1"])  # as pandas writes classes
    assert task(1.5, 2.5, among=["classify", "pairs", "regression"]) == ("regression", [1.5, 2.5])
    assert task("1", "2", among=["regression", "similarity"]) == ("regression", [1.0, 2.0])
    with pytest.raises(ExampleError, match=r"expected at least two that differ, but all are 2\.5"):
        task(2.5, 2.5)
    for label in ("2,5", "1_0", "1e10", "", "nan", True, "1e99", None, "٣"):
        expected = (
            "row 2 .line 2., column 'label': expected a number such as 3.5, of at most 1,000,000,000, got "
        )
        with pytest.raises(ExampleError, match=expected + re.escape(repr(label))):
            task(1.5, label, task="regression")
    with pytest.raises(ExampleError, match=r"expected a number such as 3\.5, .* got '2,5'"):
        task("1", "2,5")  # no two classes


def test_the_pairs_of_sts_b(tmp_path):
    text = 'index\tsentence1\tsentence2\tscore\n7\tA "plane\tAn aeroplane\t5.0\n8\tA\tB\t0.25\n'
    examples = read_examples(write(tmp_path, "dev.tsv", text))
    assert examples.task == "similarity"
    assert examples.rows == [
        {"id": "7", "text": 'A "plane', "text_pair": "An aeroplane", "label": 5.0},
        {"id": "8", "text": "A", "text_pair": "B", "label": 0.25},
    ]
    others = "text,sentiment,score\na,good,0.97\nb,bad,0.8\n"  # of somebody's classifier: how sure it was
    with pytest.raises(ExampleError, match="column 'label': it is missing; there are text, sentiment, score"):
        read_examples(write(tmp_path, "sure.csv", others))


@pytest.mark.parametrize(
    "bad", ["NA", "nan", None, "", "#N/A", "-", "~3.5", "45.5%", "€3.50", "1 234.5", "1,234.5", True]
)
def test_a_label_that_is_no_number_among_numbers_is_named(tmp_path, bad):
    """And does not make classes of all the others."""
    rows = [{"text": "a", "label": label} for label in (4.2, "3.9", bad, 5, 1e-3)]
    with pytest.raises(ExampleError) as caught:
        read_examples(jsonl(tmp_path, *rows))
    assert str(caught.value).endswith(
        "row 3 (line 3), column 'label': expected a number such as 3.5, of at most 1,000,000,000, as most labels are "
        f"(--task classify or pairs makes classes of them), got {bad!r}"
    )
    assert read_examples(jsonl(tmp_path, *rows), need_targets=None).rows == [{"text": "a"}] * 5


def test_where_a_label_is_missing_there_are_none(tmp_path):
    """Rows that are still to be labelled can be predicted."""
    path = write(tmp_path, "new.csv", "text,label\na,yes\nb,\n")
    unlabelled = read_examples(path, need_targets=False)
    assert (unlabelled.has_targets, unlabelled.ignored) == (False, ("label",))
    assert unlabelled.rows == [{"text": "a"}, {"text": "b"}]
    zero = jsonl(tmp_path, {"text": "a", "label": 0}, {"text": "b", "label": 1})
    assert read_examples(zero, need_targets=False).has_targets


# --- What is wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.csv", "", "no.csv has no rows"),
        ("no.csv", "text,label\n", "no.csv has no rows"),
        ("no.txt", "text,label\na,b\n", "no.txt: expected a name that ends in .csv, .tsv, .jsonl, "),
        ("no.csv", "text,text\na,b\n", "its first line, the names of the columns, has 'text' twice"),
        (
            "no.csv",
            "text,label\na,b\none, two,b\n",
            "no.csv, line 3: expected 2 cells, as in the header, got 3; a text with a comma",
        ),
        ("no.csv", "text,label\na\n", "line 2: expected 2 cells, as in the header, got 1"),
        ("no.csv", 'text,label\na,b\n"a,b\n', "no.csv, line 3: it is no CSV: unexpected end of data"),
        ("no.csv", "a,b\n1,2\n", "its columns are a, b (of a table, its first line); expected text, label (c"),
        ("no.csv", "text,sign\na,b\n", "row 1 (line 2), column 'label': it is missing; there are text, sign"),
        ("no.csv", "text,label\na,b\n\n ,b\n", "no.csv, row 2 (line 4), column 'text': expected a text, got ' '"),
        ("no.csv", "text,label\na,\n", "column 'label': expected a text or an integer, got ''"),
        ("no.csv", "tokens,tags\na,b\n", "tokens and tags are lists, which a table has not: expected .jsonl, .js"),
        ("no.csv", "question,context,answer,answer_start\na,b,b,first\n", "'answer_start': expected the number of"),
        ("no.jsonl", '{"text": "a"\n', "no.jsonl, line 1: it is no JSON: "),
        ("no.jsonl", '\n["a", "b"]\n', "no.jsonl, line 2: expected an object a line, got a list, which .json is for"),
        ("no.jsonl", "\n7\n", 'no.jsonl, line 2: expected an object such as {"text": "…", "label": '),
        ("no.jsonl", '{"text": 5, "label": "a"}', "row 1 (line 1), column 'text': expected a text, got 5"),
        ("no.jsonl", '{"text": "a", "label": "x"}\n{"text": "a", "label": 0.5}', "row 2 (line 2), column 'label': ex"),
        ("no.jsonl", '{"text": "a", "label": true}', "column 'label': expected a text or an integer, got True"),
        ("no.jsonl", '{"text": "a", "label": null}', "column 'label': expected a text or an integer, got None"),
        ("no.jsonl", '{"text": "\\u001b[31m", "label": ""}', "column 'label': expected"),
        ("no.jsonl", "[" * 100_000, "line 1: it is no JSON"),
        ("no.jsonl", f'{{"text": "a", "label": {"9" * 5000}}}', "line 1: expected numbers of at most 4,300 digits"),
        ("no.jsonl", '{"text": "a", "label": "\\ud800"}', "row 1 (line 1), column 'label': expected a text or an"),
        ("no.jsonl", '{"text": "a \\udfff", "label": "b"}', "column 'text': expected a text, got 'a \\udfff'"),
        ("no.csv", f"text,label\na,b\n{'a' * 140_000},b\n", "line 3: expected cells of at most 131,072 characters"),
    ],
)  # fmt: skip
def test_files_that_do_not_do(tmp_path, name, content, message):
    with pytest.raises(ExampleError) as caught:
        read_examples(write(tmp_path, name, content))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("row", "changes", "message"),
    [
        (QUESTION, {"answer_start": 8}, "expected where the context has 'mary', got 8, where it has 'ary'"),
        (QUESTION, {"answer_start": 10**30}, "'answer_start': expected where the context has 'mary', got 1000"),
        (QUESTION, {"answer_start": -1}, "'answer_start': expected the number of characters before the answer, got -1"),
        (QUESTION, {"answer": ""}, "column 'answer': expected a text, got ''"),
        (TAGGED, {"tags": ["O"]}, "column 'tags': expected a tag for each of the 3 tokens, got 1"),
        (TAGGED, {"tokens": "it was mary"}, "column 'tokens': expected a list of words, got 'it was mary'"),
        (TAGGED, {"tokens": []}, "column 'tokens': expected a list of words, got []"),
        (TAGGED, {"tags": ["O", "O", 0.5]}, "column 'tags': expected a list of texts or integers, got ['O', 'O', 0.5]"),
    ],
)  # fmt: skip
def test_rows_that_do_not_do(tmp_path, row, changes, message):
    with pytest.raises(ExampleError) as caught:
        read_examples(jsonl(tmp_path, row, {**row, **changes}))
    assert "rows.jsonl, row 2 (line 2), column " in str(caught.value)
    assert message in str(caught.value)


def test_a_row_that_lacks_a_column_is_named(tmp_path):
    with pytest.raises(
        ExampleError, match=r"row 2 \(line 2\), column 'text': it is missing; there are label$"
    ):
        read_examples(jsonl(tmp_path, {"text": "a", "label": "b"}, {"label": "b"}))


def test_semicolons_that_part_nothing(tmp_path):
    path = write(tmp_path, "rows.csv", "text,label\na;b,c;d\n")
    assert read_examples(path).rows == [{"text": "a;b", "label": "c;d"}]
    path = write(tmp_path, "rows.csv", "text,label,a;b\na,b,c\n")
    assert read_examples(path).ignored == ("a;b",)


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        if name:
            archive.writestr(name, "text,label")
    return file.getvalue()


BINARY = {
    "a spreadsheet": (zipped("xl/workbook.xml"), "zip archive"),
    "an empty archive": (zipped(""), "zip archive"),
    "an old spreadsheet": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "an old .xls or .doc"),
    "gzip": (gzip.compress(b"text,label\na,b\n"), "compressed with gzip"),
    "bzip2": (bz2.compress(b"text,label\na,b\n"), "compressed with bzip2"),
    "xz": (lzma.compress(b"text,label\na,b\n"), "compressed with xz"),
    "PDF": (b"%PDF-1.7\n", "a PDF"),
    "parquet": (b"PAR1" + bytes(20), "Parquet"),
    "SQLite": (b"SQLite format 3\0" + bytes(80), "SQLite"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG image"),
}


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
@pytest.mark.parametrize(("content", "what"), BINARY.values(), ids=BINARY)
def test_files_that_are_no_text_under_a_name_of_one(tmp_path, name, content, what):
    with pytest.raises(CorpusError, match=rf"{name} (is|has) .*{re.escape(what)}.*") as caught:
        read_examples(write(tmp_path, name, content))
    assert str(caught.value).isprintable()


def test_what_is_no_file_of_text(tmp_path):
    with pytest.raises(ExampleError, match=r"rows\.csv is not there"):
        read_examples(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(ExampleError, match=r"rows\.csv is no file \(but a folder"):
        read_examples(tmp_path / "rows.csv")
    with pytest.raises(CorpusError, match=r"bad\.csv is not UTF-8: byte 0xe9 at offset 14; convert it"):
        read_examples(write(tmp_path, "bad.csv", "text,label\ncaf\xe9,b\n".encode("latin-1")))
