"""Each line of the table "I have …, I run …" on the page about the library: the file is made, and the line is run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_task

from minigrad.bert.__main__ import main
from minigrad.bert.checkpoint import read_config
from minigrad.bert.settings import FinetuningArguments
from minigrad.bert.trained import trained_model

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "book" / "library.md"
SHORT = ["--epochs", "1", "--batch-size", "8", "--max-length", "40", "--learning-rate", "3e-3"]

Rows = list[dict[str, Any]]


def table(columns: dict[str, str], separator: str) -> Callable[[Rows], str]:
    """Of rows: their columns under other names, parted by something."""

    def text(rows: Rows) -> str:
        lines = [
            separator.join(columns),
            *(separator.join(str(row[ours]) for ours in columns.values()) for row in rows),
        ]
        return "\n".join(lines)

    return text


def squad(rows: Rows) -> str:
    asked = [
        {
            "context": row["context"],
            "qas": [
                {
                    "id": str(number),
                    "question": row["question"],
                    "answers": [{"text": row["answer"], "answer_start": row["answer_start"]}],
                }
            ],
        }
        for number, row in enumerate(rows)
    ]
    return json.dumps({"data": [{"title": "stories", "paragraphs": asked}]})


def conll(rows: Rows) -> str:
    words = ["\n".join(map(" X ".join, zip(row["tokens"], row["tags"], strict=True))) for row in rows]
    return "-DOCSTART- X O\n\n" + "\n\n".join(words) + "\n"


def of_the_course(rows: Rows) -> str:
    """As many lines of the file that the page names."""
    header, *texts = (
        (ROOT / "book/records/authors/train.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    )
    return "".join([header, *texts[::120][: len(rows)]])


def lines(rows: Rows) -> str:
    renamed = [{"premise": row["text"], "hypothesis": row["text_pair"], "gold": row["label"]} for row in rows]
    return "\n".join(map(json.dumps, renamed))


def stars(rows: Rows) -> str:
    return table({"text": "text", "label": "label"}, ",")(
        [{**row, "label": int(row["label"])} for row in rows]
    )


# By the name of the file: the task that its examples are of, and how they are written.
FILES: dict[str, tuple[str, Callable[[Rows], str]]] = {
    "book/records/authors/train.csv": ("classify", of_the_course),
    "reviews.csv": ("classify", table({"review": "text", "stars": "label"}, ";")),
    "train.tsv": ("pairs", table({"sentence1": "text", "sentence2": "text_pair", "label": "label"}, "\t")),
    "nli.jsonl": ("pairs", lines),
    "stars.csv": ("regression", stars),
    "sts.tsv": ("similarity", table({"sentence1": "text", "sentence2": "text_pair", "score": "label"}, "\t")),
    "rows.json": ("classify", json.dumps),
    "squad.json": ("qa", squad),
    "train.conll": ("tag", conll),
}


def options_on_the_page(command: str) -> list[str]:
    """What the lines of a command's table run."""
    head = f"| I have | I run `python -m minigrad.bert {command}` with |"
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(head)
    return re.findall(r"\| `(--data [^`]+)` \|", rest.partition("\n\n")[0])


def test_numbers_on_the_page_are_those_of_the_library():
    page = PAGE.read_text(encoding="utf-8")
    assert f"which reads {read_config(trained_model()).max_position_embeddings} tokens at most" in page
    assert f"cut at `--max-length` tokens: {FinetuningArguments.max_length}, or" in page


def test_each_kind_of_file_is_on_the_page():
    assert [shlex.split(options)[1] for options in options_on_the_page("finetune")] == list(FILES)


@pytest.mark.parametrize("options", options_on_the_page("finetune"))
def test_what_the_page_says_to_run(options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(options)
    task, written = FILES[words[1]]
    Path(words[1]).parent.mkdir(parents=True, exist_ok=True)
    Path(words[1]).write_text(written(tiny_task.rows(task, 16)), encoding="utf-8")
    model = str(tiny_task.pretrained(tmp_path / "model"))
    assert main(["finetune", "--model", model, "--output", "runs/task", *words, *SHORT]) == 0
    told = capsys.readouterr().out
    assert f"{task} (" in told
    command = shlex.split(told.partition("Your turn:\n")[2])
    assert command[1:4] == ["-m", "minigrad.bert", "predict"]
    assert main(command[3:]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 16
    assert "scores: " in said.err
    assert main(["evaluate", "--model", "runs/task", *words]) == 0
    assert capsys.readouterr().out.startswith(f"{words[1]}: ")


@pytest.mark.parametrize(
    ("options", "expected"),
    list(
        zip(
            options_on_the_page("compare"),
            (
                r"Where does the whale sleep\?(\n +-?[01]\.\d\d  row \d+: .*){5}\n",
                r'(\{"row": \d+, "text": .*, "text_pair": .*, "similarity": -?[01]\.\d.*\}\n){16}',
                r"the vectors of 16 texts, 24 numbers each, are in vectors\.npy\n",
            ),
            strict=True,
        )
    ),
)
def test_what_the_page_says_to_compare(options, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(options)
    task, written = FILES.get(words[1], ("classify", table({"text": "text"}, ",")))
    Path(words[1]).write_text(written(tiny_task.rows(task, 16)), encoding="utf-8")
    model = str(tiny_task.pretrained(tmp_path / "model"))
    assert main(["compare", "--model", model, *words]) == 0
    said = capsys.readouterr()
    assert re.fullmatch(expected, said.out)
    assert ("with the labels: Pearson " in said.err) == (task == "similarity")
