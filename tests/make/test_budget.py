"""What a chapter spends above the line and below it, and what says no."""

from __future__ import annotations

from typing import Any

import pytest

from book.make import budget

pytestmark = pytest.mark.no_arrays


def page(words: int, cells: int = 1, below: int = 0, **course: Any) -> Any:
    """A chapter of so many words and cells."""
    box = f"<details>\n<summary>How</summary>\n\n{'word ' * below}\n\n</details>" if below else ""
    sources = ["word " * words + box, *["## x"] * (cells - 1)]
    parts = [{"cell_type": "markdown", "metadata": {}, "source": source} for source in sources]
    return {"cells": parts, "metadata": {"course": {"idea": "One thing.", **course}}}


@pytest.mark.parametrize(
    ("spent", "over"),
    [
        (page(1700, 40, 900), []),
        (page(1801), ["words: 1801; the budget is 1800"]),
        (page(10, 46), ["cells: 46; the budget is 45"]),
        (page(10, below=1001), ["below: 1002; the budget is 1000"]),
        (page(10, idea=""), ["the idea has 0 words, and should have 1 to 25"]),
        (page(10, idea="word " * 26), ["the idea has 26 words, and should have 1 to 25"]),
    ],
)
def test_what_is_over_is_named(spent, over):
    assert list(budget.over(spent)) == over


def test_a_page_over_the_budget_fails(monkeypatch, capsys):
    monkeypatch.setattr(budget, "read", lambda name: page(1900 if name == "masking" else 1700))
    assert budget.main(["one_head"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["one_head", "1,700"]
    assert budget.main(["one_head", "masking"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("words")


def test_a_chapter_that_there_is_not_is_named(capsys):
    with pytest.raises(SystemExit):
        budget.main(["one_haed"])
    assert "there is no chapter one_haed" in capsys.readouterr().err
