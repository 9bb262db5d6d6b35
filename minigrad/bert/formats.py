"""Files as people have them: tables, JSON, and tagged words, as rows by column.

    .csv, .tsv                  a header, and cells parted by commas, semicolons, tabs or bars
    .jsonl                      an object a line
    .json                       a list of objects, or questions as SQuAD has them (Rajpurkar et al. 2016)
    .conll, .bio, .iob          a word a line and its tag last, a blank line after each sentence (Tjong Kim Sang 2002)

Whatever is wrong is an ExampleError that names the file, the line, what came and what was expected.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from minigrad.messages import quoted, shown
from minigrad.text.corpus import read_text

Row = dict[str, Any]
Rows = Iterator[tuple[int, Row]]  # the line at which each begins, 0 if none is known, and its values
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_SPACE = re.compile(r"[ \t\n\r]*")  # JSON's


class ExampleError(ValueError):
    """A file of examples from which nothing can be learned."""


def read_rows(path: Path) -> list[tuple[int, Row]]:
    """The rows of a file, by the end of its name. Raises ExampleError; CorpusError for a file that is not UTF-8."""
    if not path.is_file():
        problem = "is no file (but a folder, a pipe or a device)" if path.exists() else "is not there"
        raise ExampleError(f"{path} {problem}")
    read = FORMATS.get(path.suffix.lower())
    if read is None:
        *most, last = FORMATS
        raise ExampleError(f"{path}: expected a name that ends in {', '.join(most)} or {last}")
    found = list(read(path, read_text(path)))
    if not found:
        raise ExampleError(f"{path} has no rows")
    return found


# --- Tables ----------------------------------------------------------------------------------------------


def _table(path: Path, text: str) -> Rows:
    """A table with a header; its separator is the one that the first line has most of, or names (`sep=;`, Excel's)."""
    if named := re.match(r"sep=([,;\t|])\r?\n", text):
        text = "\n" + text[named.end() :]  # so that the lines have their numbers
    first = text.lstrip("\r\n ").partition("\n")[0].rstrip()
    most = max("\t,;|", key=first.count)
    default = "\t" if path.suffix.lower() == ".tsv" else ","
    separator = named[1] if named else most if most in first else default
    # Files with tabs often have quotes that mean nothing, as GLUE's have.
    plain = separator == "\t" and not _is_quoted(text)
    rows = _plain_cells(text) if plain else _quoted_cells(path, text, separator)
    _, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    for name in names:
        if name and names.count(name) > 1:
            raise ExampleError(f"{path}: its first line, the names of the columns, has {quoted(name)} twice")
    for line, cells in rows:
        if not any(map(str.strip, cells)):
            continue
        if len(cells) != len(names):
            hint = f'; a text with {SEPARATORS[separator]} or a line break in it stands in "quotes"'
            hint = "; a text with a line break in it is read in a table with commas" if plain else hint
            came = f"expected {len(names)} cells, as in the header, got {len(cells)}{hint}"
            raise ExampleError(f"{path}, line {line}: {came}")
        yield line, dict(zip(names, cells, strict=True))


def _is_quoted(text: str) -> bool:
    """Whether cells that begin with a quote end with one, and have others in pairs alone."""
    cells = [cell for line in text.split("\n") for cell in line.rstrip("\r").split("\t") if cell[:1] == '"']
    return bool(cells) and all(
        len(cell) > 1 and cell[-1] == '"' and '"' not in cell[1:-1].replace('""', "") for cell in cells
    )


def _plain_cells(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, cells in enumerate(text.split("\n"), start=1):
        if cells.strip():
            yield line, cells.rstrip("\r").split("\t")


def _quoted_cells(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        if "field limit" in str(error):
            most = f"{csv.field_size_limit():,} characters"
            words = f"expected cells of at most {most}, got a longer one"
            raise ExampleError(f"{path}, line {line}: {words}") from None
        raise ExampleError(f"{path}, line {line}: it is no CSV: {error}") from None


# --- JSON ------------------------------------------------------------------------------------------------


def _lines_of_json(path: Path, text: str) -> Rows:
    for line, one in enumerate(text.split("\n"), start=1):
        if one.strip():
            value, end = _value(path, line, one, _SPACE.match(one).end())  # type: ignore[union-attr]
            if one[end:].strip():
                raise ExampleError(f"{path}, line {line}: it is no JSON: something comes after the object")
            if isinstance(value, list):
                raise ExampleError(
                    f"{path}, line {line}: expected an object a line, got a list, which .json is for"
                )
            yield line, _object(path, line, value)


def _json(path: Path, text: str) -> Rows:
    """A list of objects, each with its line; or SQuAD's questions."""
    place = _SPACE.match(text).end()  # type: ignore[union-attr]
    if text[place : place + 1] != "[":
        value, place = _value(path, 1, text, place)
        more = " and more after it; a file with an object a line is .jsonl" if text[place:].strip() else ""
        if isinstance(value, dict) and isinstance(value.get("data"), list) and not more:
            yield from _questions(path, value["data"])
            return
        expected = 'a list of objects, or "data" with paragraphs and questions as SQuAD has them'
        raise ExampleError(f"{path}: expected {expected}, got {quoted(value, 40)}{more}")
    sign, line, counted = "[", 1, 0
    while sign != "]":
        place = _SPACE.match(text, place + 1).end()  # type: ignore[union-attr]
        line, counted = line + text.count("\n", counted, place), place
        if text[place : place + 1] != "]" or sign == ",":
            value, place = _value(path, line, text, place)
            yield line, _object(path, line, value)
            place = _SPACE.match(text, place).end()  # type: ignore[union-attr]
        sign = text[place : place + 1]
        if sign not in ("]", ",") or (sign == "]" and text[place + 1 :].strip()):
            after = "the end of the list" if sign == "]" else ", or ] after this object"
            raise ExampleError(f"{path}, line {line}: it is no JSON: expected {after}")


def _value(path: Path, line: int, text: str, place: int) -> tuple[Any, int]:
    """The value of JSON at a place, and where it ends."""
    try:
        return json.JSONDecoder().raw_decode(text, place)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ExampleError(f"{path}, line {line}: it is no JSON: {shown(str(error))}") from None
    except ValueError:  # JSON all the same, but Python makes no integer of it
        most = sys.get_int_max_str_digits()
        words = f"expected numbers of at most {most:,} digits, got a longer one"
        raise ExampleError(f"{path}, line {line}: {words}") from None


def _object(path: Path, line: int, value: Any) -> Row:
    if isinstance(value, dict):
        if value.get("answers") is None or "answer" in value:
            return value
        return {**value, **_answers(f"{path}, line {line}", value["answers"])}
    example = '{"text": "…", "label": "…"}'
    raise ExampleError(f"{path}, line {line}: expected an object such as {example}, got {quoted(value, 40)}")


def _answers(where: str, answers: Any) -> Row:
    """The columns of a question's answers: the first is learned, and each counts as right. None at all is "" at 0.

    answers: a list of objects, as in SQuAD, or an object of two lists, as in Hugging Face's datasets.
    """
    pairs = answers
    if isinstance(answers, dict) and answers.keys() >= {"text", "answer_start"}:
        texts, starts = answers["text"], answers["answer_start"]
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            pairs = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    if not isinstance(pairs, list) or not all(
        isinstance(one, dict) and one.keys() >= {"text", "answer_start"} for one in pairs
    ):
        what = "text and answer_start of each answer, or a list of each"
        raise ExampleError(f"{where}, column 'answers': expected {what}, got {quoted(answers, 60)}")
    found = tuple((one["text"], one["answer_start"]) for one in pairs)
    answer, start = found[0] if found else ("", 0)
    return {"answer": answer, "answer_start": start, "answers": found}


def _questions(path: Path, texts: list[Any]) -> Rows:
    """Of SQuAD's file: a row for each question, without a line, which JSON does not keep."""
    number = 0
    for place, text in enumerate(texts, start=1):
        try:
            found = [(one["context"], question) for one in text["paragraphs"] for question in one["qas"]]
            for context, question in found:
                number += 1
                row = {"id": question.get("id", number), "question": question["question"], "context": context}
                answers = question.get("answers", [] if question.get("is_impossible") else None)
                if answers is not None:
                    row |= _answers(f"{path}, question {number}", answers)
                    if question.get("is_impossible", not answers) != (not answers):
                        what = f"is_impossible is {question['is_impossible']}, with {len(answers)} answers"
                        raise ExampleError(f"{path}, question {number}: {what}")
                yield 0, row
        except (KeyError, TypeError, AttributeError) as error:
            what = "paragraphs, each with context and qas, and those with question, answers, text and answer_start"
            raise ExampleError(
                f"{path}, text {place} of its data: expected {what}; failed on {error}"
            ) from None


# --- Tagged words ----------------------------------------------------------------------------------------


def _tagged(path: Path, text: str) -> Rows:
    """Sentences of CoNLL: the first column is the word and the last its tag; of one column, words alone.

    A line before a sentence that begins with # and ends with no tag of an entity is a comment, if it has an = or
    another number of columns.
    """
    columns, start = 0, 0
    words: list[list[str]] = []
    for line, one in enumerate([*text.split("\n"), ""], start=1):
        cells = [cell.strip() for cell in one.split("\t" if "\t" in one else " ") if cell.strip()]
        if one.startswith("#") and not words and len(cells) > 1 and not re.match("O$|[A-Z]-", cells[-1]):
            if "=" in one or len(cells) not in (2, columns):
                continue
            what = "is this a comment, or the word #? Take it out if it is a comment"
            raise ExampleError(f"{path}, line {line}: {what}: {quoted(one.strip(), 60)}")
        if cells and cells[0] != "-DOCSTART-":
            columns, start = columns or len(cells), start or line
            if len(cells) != columns:
                what = f"expected {columns} columns, as in the lines before, got {len(cells)}"
                raise ExampleError(f"{path}, line {line}: {what}: {quoted(one.strip(), 60)}")
            words.append(cells)
        elif words:
            if [cells[0] for cells in words[:2]] == ["1", "2"] and columns > 2:
                raise ExampleError(
                    f"{path}, line {start}: expected a word in the first column, which counts them"
                )
            tags = {"tags": [cells[-1] for cells in words]} if columns > 1 else {}
            yield start, {"tokens": [cells[0] for cells in words], **tags}
            words, start = [], 0


FORMATS: dict[str, Callable[[Path, str], Rows]] = {
    ".csv": _table,
    ".tsv": _table,
    ".jsonl": _lines_of_json,
    ".json": _json,
    **dict.fromkeys((".conll", ".bio", ".iob"), _tagged),
}
