"""The README: what it says of the chapters, its commands, its links, its citation, its pictures."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import minigrad
from book.make import routes
from minigrad.bert.__main__ import main
from minigrad.bert.options import parse
from minigrad.seq2seq.__main__ import parse as parse_translation

ROOT = Path(minigrad.__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [shlex.split(line, comments=True) for block in BLOCKS for line in block.splitlines() if line]
MINUTES = re.compile(r"\| (\d+) \|")


def table(text: str) -> list[str]:
    """Its rows, without the minutes."""
    return [MINUTES.sub("| |", row) for row in text.splitlines() if row.startswith("|")]


@pytest.mark.no_arrays
def test_it_lists_the_chapters_as_they_are():
    """`make map` mends it. Minutes may be a little out of date; all else may not."""
    made = routes.renewed(ROOT)[ROOT / "README.md"]
    assert table(TEXT) == table(made)
    for said, counted in zip(MINUTES.findall(TEXT), MINUTES.findall(made), strict=True):
        assert abs(int(said) - int(counted)) <= 15, f"{said} minutes are {counted} now"


@pytest.mark.no_arrays
def test_what_it_links_is_there():
    paths = re.findall(r"\]\(([^)]+)\)", TEXT) + re.findall(r'(?:src|srcset)="([^"]+)"', TEXT)
    assert len(paths) > 8
    assert [path for path in paths if not path.startswith("https://") and not (ROOT / path).exists()] == []


@pytest.mark.no_arrays
def test_its_commands_are_commands():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    known = 0
    for command in COMMANDS:
        if command[0] == "make":
            assert command[1] in targets
        elif "minigrad.bert" in command:
            parse(command[command.index("minigrad.bert") + 1 :])
        elif "minigrad.seq2seq" in command:
            parse_translation(command[command.index("minigrad.seq2seq") + 1 :])
        elif command[0] == "pip":
            assert set(re.findall(r"\[(\w+)\]", command[-1])) <= set(extras)
        else:
            continue
        known += 1
    assert known >= 11
    assert set(re.findall(r"`make ([a-z-]+)`", TEXT)) <= targets


def test_its_example_prints_what_it_says(capsys):
    shown = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)[1]
    (command,) = (
        c for c in COMMANDS if c[:4] == ["python", "-m", "minigrad.bert", "fill-mask"] and len(c) == 5
    )
    assert main(command[3:]) == 0
    printed = capsys.readouterr().out
    share = re.compile(r"(\d+)%")
    assert share.sub("%", printed) == share.sub("%", shown)
    for said, now in zip(share.findall(shown), share.findall(printed), strict=True):
        assert abs(int(said) - int(now)) <= 1


@pytest.mark.no_arrays
def test_it_says_where_to_clone_from_once_there_is_an_address():
    found = re.search(r'^repository:\n  url: "(.*)"', (ROOT / "_config.yml").read_text(), re.MULTILINE)
    addresses = re.findall(r"git clone (\S+)", TEXT)
    assert addresses == ([found[1]] if found[1] else [])


@pytest.mark.no_arrays
def test_the_citation_is_that_of_the_citation_file():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (year,) = re.findall(r'^date-released: "(\d{4})', cited, re.MULTILINE)
    (version,) = re.findall(r"^version: (\S+)", cited, re.MULTILINE)
    (title,) = re.findall(r'^title: "(.*)"', cited, re.MULTILINE)
    (author,) = re.findall(r"^  - name: (.*)", cited, re.MULTILINE)
    for field, value in {"title": title, "author": f"{{{author}}}", "version": version, "year": year}.items():
        assert re.search(rf"^  {field} += {re.escape(f'{{{value}}}')},?$", TEXT, re.MULTILINE), field


@pytest.mark.no_arrays
def test_the_words_for_its_picture_are_those_of_the_record():
    record = json.loads(
        (ROOT / "minigrad" / "bert" / "trained" / "learning.json").read_text(encoding="utf-8")
    )
    points = {point["step"]: point for point in record["points"]}
    first, last = points[0], points[12000]
    alt = re.search(r'alt="([^"]+)"', TEXT)[1]
    for step, share in ((0, ".1%"), (200, None), (3000, None), (6000, ".0%"), (12000, ".0%")):
        word, probability = points[step]["guesses"][0]
        said = word if share is None else f"{word}, {'at ' if step == 0 else ''}{probability:{share}}"
        where = "before training" if step == 0 else f"at step {step:,}" if step == 200 else f"at {step:,}"
        assert f"{where}, {said.replace('%', ' %')}" in alt
    for nats in (
        f"{first['mlm_loss']:.1f} nats",
        f"{record['unigram_entropy']:.2f} of word frequencies",
        f"{last['mlm_loss']:.1f}.",
    ):
        assert nats in alt


@pytest.mark.no_arrays
def test_its_pictures_are_small():
    for path in re.findall(r'(?:src|srcset)="(?:https:.*/raw/main/)?([^"]+)"', TEXT):
        assert (ROOT / path).stat().st_size < 200_000, path
