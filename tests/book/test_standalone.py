"""A chapter or a solution alone in an empty folder, beside an installed minigrad: as a reader who downloads it.

The same run holds its shape comments. It leaves out the trainings that take minutes, which `make nbval` runs.
"""

from __future__ import annotations

import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from building import ROOT

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")

pytestmark = [pytest.mark.slow, pytest.mark.numpy_only("a notebook chooses its backend itself")]

PATHS = [path for folder in ("book", "solutions") for path in sorted((ROOT / folder).glob("*.ipynb"))]


# The authors' tools are no part of the wheel: they come from the repository, and all else from the wheel.
SHAPES = f"""
import runpy
import minigrad.course
minigrad.course.__path__.append({str(ROOT / "minigrad" / "course")!r})
runpy.run_module("minigrad.course.authoring.shapes", run_name="__main__")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with minigrad as its wheel installs it, made from a copy of the source."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("minigrad", "book/runs"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(source), str(source)], check=True
    )
    (wheel,) = source.glob("minigrad_bert-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


def test_the_wheel_says_what_it_is(installed: Path):
    (information,) = installed.glob("minigrad_bert-*.dist-info")
    found = email.message_from_string((information / "METADATA").read_text(encoding="utf-8"))
    assert (found["Name"], found["License-Expression"]) == ("minigrad-bert", "MIT AND CC-BY-4.0")
    assert "The minigrad authors" in (found["Author"] or found["Author-email"])
    assert (information / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_has_no_tools_of_authors_and_needs_none(installed: Path):
    assert not (installed / "minigrad" / "course" / "authoring").exists()
    modules = sorted((installed / "minigrad").rglob("*.py"))
    assert len(modules) > 150
    imported = [
        path.name
        for path in modules
        if re.search(r"^\s*(from|import) .*\bauthoring\b", path.read_text(), re.M)
    ]
    assert imported == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_runs_alone_and_its_shape_comments_are_true(path: Path, installed: Path, tmp_path: Path):
    notebook = nbformat.read(path, as_version=4)
    mine = f"import minigrad\nassert minigrad.__file__.startswith({str(installed)!r}), minigrad.__file__"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(mine))
    nbformat.write(notebook, tmp_path / path.name)
    done = subprocess.run(
        [sys.executable, "-c", SHAPES, path.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed), "MINIGRAD_PROGRESS": "off"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.listdir(tmp_path) == [path.name], "it left files behind"
