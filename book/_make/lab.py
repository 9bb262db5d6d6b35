"""What `make lab` does: copies the exercises to a folder of the learner's own, and opens JupyterLab on a first page.

    python -m book._make.lab [--copy-only] [options of jupyter lab]

The copies are in my-exercises/, which git and the tests leave alone: what is solved there is in nobody's way, and the
name says whose it is. A file that is there is never replaced once somebody has worked in it. Works in the repository's
root; needs JupyterLab.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book._make.notebooks import KERNEL, fingerprint, make_exercise, read, write
from minigrad.course.check.exercise import EXERCISES, Exercise
from minigrad.course.parts import MADE_WITH

FOLDER = "my-exercises"
START = "START.ipynb"

# JupyterLab's own questions on its first start: whether to fetch news, whether there is a newer version.
SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


# --- Copies ----------------------------------------------------------------------------------------------


def prepare(root: Path) -> list[str]:
    """Bring my-exercises/ up to date with exercises/, and return what there is to say, a line for each file.

    Raises FileNotFoundError where `root` is not the course's folder.
    """
    exercises = sorted((root / "exercises").glob("*.ipynb"))
    if not exercises:
        raise FileNotFoundError(f"{root} has no exercises/: run this in the course's folder")
    folder = root / FOLDER
    first = not folder.exists()
    folder.mkdir(exist_ok=True)
    said = []
    for path in exercises:
        copy = read(path)
        solution = root / "solutions" / path.name
        version = fingerprint(make_exercise(read(solution)) if solution.exists() else copy)
        # Of the exercise as it was made, even if somebody has solved it in exercises/.
        copy.metadata[MADE_WITH] = version
        said += place(copy, folder, path.stem)
    place(start_page(root), folder, Path(START).stem)
    if first:
        return [f"{FOLDER}/: the exercises of {len(exercises)} chapters are copied; your answers stay there"]
    return said


def place(notebook: Any, folder: Path, stem: str) -> list[str]:
    """Write a notebook as STEM.ipynb, or beside a version that somebody has worked in, as STEM.new.ipynb.

    Its metadata say which version it is. Returns what there is to say of it: nothing if it is there already.
    """
    version = notebook.metadata[MADE_WITH]
    kept = ""
    number = 0
    while True:
        suffix = ["", ".new"][number] if number < 2 else f".new{number}"
        path = folder / f"{stem}{suffix}.ipynb"
        number += 1
        if not path.exists():
            write(path, notebook)
            if kept:
                return [f"{FOLDER}/{path.name}: a new version; {kept} has your answers and stays as it is"]
            return [f"{FOLDER}/{path.name}: copied"]
        there = _read_or_none(path)
        if there is not None:
            made_with = there.metadata.get(MADE_WITH)
            if version in (made_with, fingerprint(there)):
                return []
            if fingerprint(there) == made_with:
                write(path, notebook)
                return [f"{FOLDER}/{path.name}: brought up to date; nobody had begun it"]
        kept = kept or path.name


def _read_or_none(path: Path) -> Any:
    try:
        return read(path)
    except (
        Exception
    ):  # whatever nbformat raises for a file that is no notebook: it is somebody's all the same
        return None


# --- The page to start from ------------------------------------------------------------------------------

WELCOME = """# Start here

You read a chapter, and then you write its parts yourself. The checks tell you what is right, and which mistake
is behind what is not.

1. Open the first chapter in the table below and read it. You can run its cells with Shift+Enter.
2. Open its exercises and run the first cell. Write your answer where the dots `...` are, run that cell, then run the
   cell with the check.
3. Go on with the next chapter. The order of the table is the order of the course.

*If you have this page without the course, run `pip install ".[course]"` in the course's folder, then `make lab`.*"""

RULES = """## How the exercises work

- **Your answers are yours.** This folder, `my-exercises`, holds copies. An update of the course never writes over a
  file in which you have worked. If an exercise changes, its new version is put beside yours, as `NN_name.new.ipynb`.
- **A check** tries your function on several inputs. It shows the first input on which your function is wrong, what
  it returned and what was expected, and often the mistake behind it.
- **Hints** unfold below a wrong result, one after the other, the gentlest first. `check.attend.hint()` shows the
  next one too.
- **A solution** stands behind the last hint, after an attempt. `check.attend.solution()` shows it too.
- **Difficulty** goes from 1 to 3. At 1 you use what the chapter says, in a few lines. At 2 you derive something, or
  combine two ideas. At 3 you find something that the chapter does not tell.
- **Your progress** is kept in this folder. Run the next cell to see it.
- A check that takes long says at which case it is. To stop it, press the square in the toolbar.

If you save a chapter that you ran, the course's own file changes; `git checkout book` puts it back."""


def start_page(root: Path) -> Any:
    """A notebook with the order of the chapters, links to them and to the copies, and how the exercises work."""
    rows = ["| chapter | your exercises | difficulty | minutes |", "|---|---|---|---|"]
    rows += [_row(path, root) for path in sorted((root / "book").glob("[0-9]*.ipynb"))]
    page = new_notebook(
        cells=[
            new_markdown_cell(WELCOME, id="welcome"),
            new_markdown_cell("## The chapters, in their order\n\n" + "\n".join(rows), id="chapters"),
            new_markdown_cell(RULES, id="rules"),
            new_code_cell("from minigrad.course import check\n\ncheck.progress()", id="progress"),
        ]
    )
    page.metadata["kernelspec"] = KERNEL
    page.metadata[MADE_WITH] = fingerprint(page)
    return page


def _row(chapter: Path, root: Path) -> str:
    """A line of the table of chapters."""
    text = next(cell.source for cell in read(chapter).cells if cell.cell_type == "markdown")
    title = text.split("\n")[0].lstrip("# ").replace("|", "\\|")
    name = f"[{title}](../book/{chapter.name})"
    if not (root / "exercises" / chapter.name).exists():
        return f"| {name} | | | |"
    asked = [one for one in EXERCISES.values() if _is_asked_in(one, chapter)]
    if not asked:
        return f"| {name} | [exercises]({chapter.name}) | | |"
    easy, hard = min(one.difficulty for one in asked), max(one.difficulty for one in asked)
    level = str(easy) if easy == hard else f"{easy} to {hard}"
    links = f"[{len(asked)} exercises]({chapter.name})"
    newer = sorted((root / FOLDER).glob(f"{chapter.stem}.new*.ipynb"))
    links += "".join(f", [new version]({path.name})" for path in newer)
    return f"| {name} | {links} | {level} | {sum(one.minutes for one in asked)} |"


def _is_asked_in(one: Exercise, chapter: Path) -> bool:
    number = chapter.name.split("_")[0]
    return (number.lstrip("0") or "0") == str(one.chapter)


# --- JupyterLab ------------------------------------------------------------------------------------------


def trust(root: Path) -> None:
    """Tell Jupyter that the chapters and the copies nobody has touched may show their stored outputs as they are.

    Until then it takes the colours from tables and the movement from figures. What somebody has run and saved is
    trusted anyway.
    """
    notary = NotebookNotary()
    for path in [*(root / "book").glob("*.ipynb"), *(root / FOLDER).glob("*.ipynb")]:
        notebook = _read_or_none(path)
        untouched = notebook is not None and fingerprint(notebook) == notebook.metadata.get(MADE_WITH)
        if notebook is not None and (untouched or path.parent.name == "book"):
            notary.sign(notebook)


def command(root: Path, options: Sequence[str], as_root: bool) -> list[str]:
    """JupyterLab with the course's folder as its root, in a workspace of its own, on the page to start from."""
    page = f"/lab/workspaces/bert-from-nothing/tree/{FOLDER}/{START}"
    return [
        *(sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", f"--LabApp.default_url={page}"),
        *(["--allow-root"] if as_root else []),
        *options,
    ]


def main(arguments: Any = None) -> int:
    """Copy, then open JupyterLab until it ends; returns its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copy-only", action="store_true", help="do not open JupyterLab")
    known, options = parser.parse_known_args(arguments)
    root = Path.cwd()
    try:
        said = prepare(root)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(said) or f"{FOLDER}/: up to date", flush=True)
    if known.copy_only:
        return 0
    if importlib.util.find_spec("jupyterlab") is None:
        print("JupyterLab is not installed: pip install '.[course]'", file=sys.stderr)
        return 1
    trust(root)
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if as_root:
        print("You are root, which Jupyter refuses unless it is told (--allow-root): it is told.", flush=True)
    with tempfile.TemporaryDirectory(prefix="minigrad-lab-") as config:
        settings = Path(config) / "labconfig" / "default_setting_overrides.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps(SETTINGS))
        paths = os.pathsep.join(filter(None, [config, os.environ.get("JUPYTER_CONFIG_PATH")]))
        lab = subprocess.Popen(
            command(root, options, as_root), env={**os.environ, "JUPYTER_CONFIG_PATH": paths}
        )
        while True:
            try:
                return lab.wait()
            except KeyboardInterrupt:  # JupyterLab got it too, and asks whether to stop
                continue


if __name__ == "__main__":
    sys.exit(main())
