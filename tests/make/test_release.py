"""A release's version is the same wherever it is named, and its notes are those of the change log."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from book._make.release import ReleaseError, main, notes

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).parents[2]
PLACES = ("CHANGELOG.md", "CITATION.cff", "pyproject.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for place in PLACES:
        shutil.copy(ROOT / place, tmp_path)
    return tmp_path


def newest() -> str:
    return re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]


def test_the_newest_version_could_be_tagged():
    text = notes(ROOT, f"v{newest()}")
    assert text.startswith("### ")
    assert "\n## " not in text


@pytest.mark.parametrize("place", PLACES)
def test_a_place_with_another_version_is_named(folder: Path, place: str):
    path = folder / place
    path.write_text(path.read_text("utf-8").replace(newest(), "9.9.9", 1), encoding="utf-8")
    with pytest.raises(ReleaseError, match=rf"the tag is v{newest()}, and {place} has version 9.9.9"):
        notes(folder, f"v{newest()}")


def test_another_day_is_named(folder: Path):
    path = folder / "CITATION.cff"
    path.write_text(
        re.sub(r'(date-released: ").*"', r'\g<1>1999-12-31"', path.read_text("utf-8")), encoding="utf-8"
    )
    with pytest.raises(ReleaseError, match=r"and CITATION\.cff 1999-12-31"):
        notes(folder, newest())


def test_a_log_without_a_version_is_an_error(folder: Path):
    (folder / "CHANGELOG.md").write_text("# Changes\n\n## [Unreleased]\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="has no section of a version"):
        notes(folder, newest())


def test_the_exit_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(ROOT)
    assert main([]) == 2
    assert main(["v9.9.9"]) == 1
    assert main([f"v{newest()}"]) == 0
    assert "### Added" in capsys.readouterr().out
