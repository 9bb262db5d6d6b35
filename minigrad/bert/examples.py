"""Examples to learn a task from: the rows of a file, each checked before anything is trained.

Whatever is wrong is an ExampleError that names the file, the row, the column, what came and what was expected.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from minigrad.bert.config import label_names
from minigrad.bert.formats import ExampleError, Row, read_rows
from minigrad.messages import quoted, shown

INPUTS = {
    "classify": ("text",),
    "pairs": ("text", "text_pair"),
    "regression": ("text",),
    "similarity": ("text", "text_pair"),
    "qa": ("question", "context"),
    "tag": ("tokens",),
}
TARGETS = {
    **dict.fromkeys(("classify", "pairs", "regression", "similarity"), ("label",)),
    "qa": ("answer", "answer_start"),
    "tag": ("tags",),
}
TASKS = tuple(INPUTS)
NUMBERS = ("regression", "similarity")  # the tasks whose label is a number
LARGEST_LABEL = 1e9  # whose square is far from the end of float32
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no file in UTF-8 can hold it
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")
DECIMAL = re.compile(r"[+-]?([0-9]{1,18}([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]{1,2})?")
OR_NONE = "qa, or no answer"  # what a model has learned of questions some of which have none
IDENTIFIER = "id"  # a column that is kept beside those of the task, for who joins by it


@dataclass(frozen=True)
class Examples:
    """The rows of a file. lines: where each begins in the file. has_targets: whether the answers are there too.

    ignored: the columns of the first row that the task does not read. theirs: what the file calls a column, where that
    is another name than ours.
    """

    path: Path
    task: str
    rows: list[Row]
    lines: list[int]
    has_targets: bool
    ignored: tuple[str, ...] = ()
    theirs: Mapping[str, str] = field(default_factory=dict)

    def refuse(self, number: int, column: str, what: str) -> NoReturn:
        """Raise ExampleError naming a row, counted from 0 here and from 1 in the message, and its column."""
        _refuse(self.path, number + 1, self.lines[number], self.theirs.get(column, column), what)


def _refuse(path: Path, number: int, line: int, column: str, what: str) -> NoReturn:
    at = f" (line {line})" if line else ""
    raise ExampleError(f"{path}, row {number}{at}, column {column!r}: {what}")


def from_texts(task: str, texts: list[str]) -> Examples:
    """Texts that were typed: for a task with one input an example each, for one with two a pair.

    Tokens are the words between white space. Raises ExampleError for a text that is empty, and for a number of texts
    that the task does not take.
    """
    inputs = INPUTS[task]
    if len(inputs) == 2 and len(texts) != 2:
        raise ExampleError(f"{task} reads two texts, {' and '.join(inputs)}; got {len(texts)}")
    rows = []
    for start in range(0, len(texts), len(inputs)):
        row: Row = dict(zip(inputs, texts[start : start + len(inputs)], strict=True))
        for column, text in row.items():
            if _text(text) is None:
                raise ExampleError(f"{column}: expected a text, got {quoted(text)}")
            if column == "tokens":
                row[column] = text.split()
        rows.append(row)
    return Examples(Path("your text"), task, rows, [1] * len(rows), False)


def read_examples(
    path: str | Path,
    task: str | None = None,
    need_targets: bool | None = True,
    named: Mapping[str, str] | None = None,
    among: Sequence[str] = TASKS,
) -> Examples:
    """The examples in a file of one of the kinds in `minigrad.bert.formats`.

    task: one of TASKS, which determines the columns; None: the columns determine the task, and labels such as 3.5, not
    all of them whole, that a number is learned; among: the tasks that it may be. Of the other columns "id" alone is
    kept. need_targets: whether the answers must be there; False: they are read where no row lacks its label; None: they
    are not read. named: by column of ours, what the file calls it, {"text": "review"}. Raises ExampleError; CorpusError
    for a file that is not UTF-8.
    """
    path = Path(path)
    found = read_rows(path)
    theirs = _names(path, {name: None for _, row in found for name in row}, named or {})
    found = [(line, _renamed(row, theirs)) for line, row in found]
    first = {name: None for _, row in found for name in row}
    given, task = task, task or _task_of(path, first, [row.get("label") for _, row in found], among)
    there = not any(_is_missing(row, column) for _, row in found for column in TARGETS[task])
    if "label" in TARGETS[task] and {str(row.get("label")) for _, row in found} <= {"-1", "-1.0"}:
        there = False  # what stands in place of the labels of GLUE's tests
    has_targets = bool(need_targets) or (there and need_targets is False)
    columns = INPUTS[task] + (TARGETS[task] if has_targets else ())
    readers = {column: COLUMNS[column] for column in columns}
    if has_targets and task in NUMBERS:
        classes = "" if given else ", as most labels are (--task classify or pairs makes classes of them)"
        readers["label"] = (f"a number such as 3.5, of at most {LARGEST_LABEL:,.0f}{classes}", number_of)
    if path.suffix.lower() in (".csv", ".tsv") and task == "tag":
        raise ExampleError(
            f"{path}: tokens and tags are lists, which a table has not: expected .jsonl, .json or .conll"
        )
    rows = [
        _checked(path, number, line, row, readers, theirs)
        for number, (line, row) in enumerate(found, start=1)
    ]
    ignored = tuple(column for column in first if column not in (*columns, IDENTIFIER))
    return Examples(path, task, rows, [line for line, _ in found], has_targets, ignored, theirs)


def label_numbers(examples: Examples) -> dict[int, str]:
    """The names of the classes by number, in alphabetical order, or that of integers.

    For answers in a text there are none to name, and for numbers there is one score. Raises ExampleError for fewer
    than two labels that differ.
    """
    if examples.task == "qa":
        return label_names(2)
    names = {name for row in examples.rows for name in labels_of(row)}
    column = TARGETS[examples.task][0]
    if len(names) < 2:
        raise ExampleError(
            f"{examples.path}, column {column!r}: expected at least two that differ, "
            f"but all are {quoted(names.pop())}"
        )
    if examples.task in NUMBERS:
        return label_names(1)
    whole = all(name.removeprefix("-").isdecimal() and len(name) < 20 for name in names)
    return dict(enumerate(sorted(names, key=lambda name: (int(name), name) if whole else (0, name))))


def have_none(rows: Sequence[Row]) -> bool:
    """Whether there are questions without an answer, as in SQuAD 2.0."""
    return any(row.get("answer") == "" for row in rows)


def labels_of(row: Row) -> list[Any]:
    """The classes, or the number, of a row: one for a text or a pair, one for each word, none for a question."""
    return row["tags"] if "tags" in row else [row["label"]] if "label" in row else []


def appearance(label: str) -> str:
    """What labels that look alike have in common: one form of each letter, no capitals, single spaces."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
    return " ".join("".join(c for c in text if c.isspace() or not _is_unseen(c)).split())


def _is_unseen(character: str) -> bool:
    """Controls, marks of format such as the soft hyphen, variation selectors, and the fillers of Hangul."""
    return unicodedata.category(character) in ("Cc", "Cf") or _UNSEEN.match(character) is not None


# --- Columns ---------------------------------------------------------------------------------------------

# What other files call the columns (GLUE's tables; Wang et al. 2018), where they have none of ours.
ALSO = {
    **dict.fromkeys(("sentence", "sentence1", "question1"), "text"),
    **dict.fromkeys(("sentence2", "question2"), "text_pair"),
    **dict.fromkeys(("gold_label", "is_duplicate"), "label"),
    "ner_tags": "tags",
    "index": IDENTIFIER,
}


# What is learned in place of a class where the labels are numbers on a scale.
ON_A_SCALE = dict(zip(("classify", "pairs"), NUMBERS, strict=True))


def _names(path: Path, first: Row, named: Mapping[str, str]) -> dict[str, str]:
    """By our names of columns those of the file, where they differ. named: those that the reader has named."""
    also = {**ALSO, "score": "label"} if {"sentence1", "sentence2"} <= first.keys() else ALSO  # STS-B
    if {"question", "sentence"} <= first.keys():  # QNLI
        also = {"index": IDENTIFIER, "question": "text", "sentence": "text_pair"}
    for column, theirs in named.items():
        if theirs not in first:
            raise ExampleError(
                f"{path} has no column {quoted(theirs)} for {column}; there are {_listed(first)}"
            )
    known = {ours: theirs for theirs, ours in also.items() if theirs in first and ours not in first}
    return {**known, **named}


def _renamed(row: Row, theirs: Mapping[str, str]) -> Row:
    """A row by our names; a column of the file's own that has one of them gives way to what is named."""
    ours = {name: column for column, name in theirs.items()}
    return {ours.get(name, name): value for name, value in row.items() if name in ours or name not in theirs}


def _is_missing(row: Row, column: str) -> bool:
    return row.get(column) is None or (column == "label" and not str(row[column]).strip())


def _task_of(path: Path, row: Row, labels: Sequence[object], among: Sequence[str]) -> str:
    """The task whose inputs are there; pairs are looked for before single texts, numbers where they may be meant."""
    for task in ("tag", "qa", "pairs", "classify"):
        if all(column in row for column in INPUTS[task]):
            number = ON_A_SCALE.get(task, "")
            if number in among and (task not in among or _are_decimal(labels)):
                return number
            return task
    needed = "; ".join(f"{', '.join(INPUTS[task] + TARGETS[task])} ({task})" for task in TASKS)
    raise ExampleError(
        f"{path}: its columns are {_listed(row)} (of a table, its first line); expected {needed}; name others with "
        "--text, --pair and --label"
    )


def _are_decimal(labels: Sequence[object]) -> bool:
    """Whether most are numbers, and some of these not whole."""
    numbers = [text for label in labels if DECIMAL.fullmatch(text := str(label).strip())]
    return 2 * len(numbers) > len(labels) and any(float(text.replace(",", ".")) % 1 for text in numbers)


def _listed(row: Row) -> str:
    return ", ".join(shown(name, 40) for name in list(row)[:20]) or "none"


# --- Rows ------------------------------------------------------------------------------------------------


def _checked(
    path: Path, number: int, line: int, row: Row, readers: Mapping[str, Reader], theirs: Mapping[str, str]
) -> Row:
    """What a row has in these columns."""
    values: Row = {IDENTIFIER: row[IDENTIFIER]} if IDENTIFIER in row else {}
    answers = row.get("answers")  # of questions of SQuAD a tuple, from `minigrad.bert.formats`
    for column, (expected, read) in readers.items():
        name = theirs.get(column, column)
        if column in TARGETS["qa"] and answers == ():  # SQuAD 2.0's questions without one
            values[column] = row[column]
            continue
        if column not in row:
            _refuse(path, number, line, name, f"it is missing; there are {_listed(row)}")
        value = read(row[column])
        if value is None:
            _refuse(path, number, line, name, f"expected {expected}, got {quoted(row[column], 60)}")
        values[column] = value
    if "tags" in values and len(values["tags"]) != len(values["tokens"]):
        what = f"expected a tag for each of the {len(values['tokens'])} tokens, got {len(values['tags'])}"
        _refuse(path, number, line, "tags", what)
    if "answer" in values:
        pairs = answers if isinstance(answers, tuple) else ((values["answer"], values["answer_start"]),)
        for answer, start in pairs:
            place, size = _place(start), len(_text(answer) or "")
            there = None if place is None else values["context"][place : place + size]
            if there != answer or not answer:
                what = f"expected where the context has {quoted(answer, 60)}, got {quoted(start)}"
                _refuse(path, number, line, "answer_start", f"{what}, where it has {quoted(there, 60)}")
        if pairs is answers and pairs:
            values["answers"] = [answer for answer, _ in pairs]
    return values


def _text(value: object) -> str | None:
    """A text with something in it, and no half of a character, which JSON and a command line can have."""
    if not isinstance(value, str) or not value.strip() or _HALF.search(value):
        return None
    return value


def _label(value: object) -> str | None:
    """A label; JSON may have it as an integer, also as 1.0."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0:
        return str(int(value))
    text = _text(value)
    return text and text.strip()


def number_of(value: object) -> float | None:
    """A finite number; a table has it as a text."""
    if isinstance(value, bool) or not DECIMAL.fullmatch(text := str(value).strip()) or "," in text:
        return None
    return float(text) if abs(float(text)) <= LARGEST_LABEL else None


def _place(value: object) -> int | None:
    """A count of characters; CSV has it as a text."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _list(read: Callable[[object], Any]) -> Callable[[object], list[Any] | None]:
    def of(value: object) -> list[Any] | None:
        found = [read(one) for one in value] if isinstance(value, list) else []
        return found if found and None not in found else None

    return of


# What a column has to hold, in words, and what reads it: None for anything else.
Reader = tuple[str, Callable[[Any], Any]]
COLUMNS: dict[str, Reader] = {
    **dict.fromkeys(("text", "text_pair", "question", "context", "answer"), ("a text", _text)),
    "label": ("a text or an integer", _label),
    "answer_start": ("the number of characters before the answer", _place),
    "tokens": ("a list of words", _list(_text)),
    "tags": ("a list of texts or integers", _list(_label)),
}
