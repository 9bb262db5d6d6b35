"""A release's version is the same wherever it is named, and its notes are those of the change log."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from book.make.release import ReleaseError, main, notes

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).parents[2]
PLACES = ("CHANGELOG.md", "CITATION.cff", "pyproject.toml", "book/pyproject.toml")
NEWEST = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]


@pytest.mark.parametrize(
    ("place", "pattern", "instead", "said"),
    [
        *(
            (place, re.escape(NEWEST), "9.9.9", f"v{NEWEST}, and {place} has version 9.9.9")
            for place in PLACES
        ),
        ("CITATION.cff", r'(?<=date-released: ").*(?=")', "1999-12-31", r"and CITATION\.cff 1999-12-31"),
        ("CHANGELOG.md", r"(?ms)^## \[\d.*", "", "has no section of a version"),
    ],
)
def test_places_that_do_not_agree_are_named(
    tmp_path: Path, place: str, pattern: str, instead: str, said: str
):
    (tmp_path / "book").mkdir()
    for name in PLACES:
        shutil.copy(ROOT / name, tmp_path / name)
    text = (tmp_path / place).read_text("utf-8")
    (tmp_path / place).write_text(re.sub(pattern, instead, text, count=1), encoding="utf-8")
    with pytest.raises(ReleaseError, match=said):
        notes(tmp_path, f"v{NEWEST}")


def test_the_newest_version_could_be_tagged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(ROOT)
    assert main([]) == 2
    assert main(["v9.9.9"]) == 1
    capsys.readouterr()
    assert main([f"v{NEWEST}"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("### Moved")
    assert "\n## " not in said
