"""The Makefile: what it builds where, and which of its names are no files."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.no_arrays, pytest.mark.skipif(shutil.which("make") is None, reason="needs make")]

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def recipe(target: str, *arguments: str) -> str:
    """What `make TARGET` would run."""
    done = subprocess.run(
        ["make", "-n", target, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("target", ["book", "pdf", "epub"])
def test_nothing_but_the_site_is_built_where_the_site_is(target):
    """A build without Python in its pages would take it out of them, and the exercises too."""
    run = recipe(target)
    assert "jupyter-book build" in run
    for line in run.splitlines():
        assert "jupyter-book build" not in line or "--path-output _build/" in line
    assert not re.search(r"(?<!plain/)_build/html", run)


def test_the_pdf_is_made_of_the_pages_that_were_built_for_it():
    (folder,) = re.findall(r"--path-output (\S+)", recipe("pdf"))
    (read,) = re.findall(r"book\.make\.pdf (\S+)", recipe("pdf"))
    assert read == f"{folder}/_build/html"


def test_the_site_is_served_from_where_it_is_built():
    run = recipe("serve")
    assert re.search(r"COURSE_RUN=1 \S+jupyter-book build [^\n]*\.$", run, re.MULTILINE)
    assert "--path-output" not in run
    assert "book.make.site _build/html " in run
    assert "book.make.serve _build/html" in run


def test_every_name_that_is_no_file_is_declared_so():
    (phony,) = re.findall(r"^\.PHONY:((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE))
    assert targets == set(phony.replace("\\", "").split())


def test_whatever_installs_says_what_before_it_does():
    """Minutes without a word look like a machine that hangs."""
    for rule in re.split(r"\n(?=\S)", MAKEFILE):
        if rule.startswith("$(") and re.search(r"pip install|npm ci", rule):
            said = rule.find('@echo "installing')
            assert 0 < said < re.search(r"-m pip install|npm ci --", rule).start()
