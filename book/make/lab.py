"""What `make lab` does: copies exercises and chapters to the learner's own folder, and opens JupyterLab there.

    python -m book.make.lab [--copy-only] [options of jupyter lab]

The copies are in my-exercises/, which git and the tests leave alone: what is solved there is in nobody's way, and the
name says whose it is. A file that is there is never replaced once somebody has worked in it. An exercise's name has the
chapter's place and title, "07 One attention head"; where these are others now, it gets a new name and stays as it is.
The chapters are in my-exercises/book/, under their own names, so that their links lead to each other: JupyterLab saves
what is open every two minutes, and would change the course's own files. What they leave out and fold is in copies.py.
Works in the repository's root; needs JupyterLab.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.util
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

NOT_INSTALLED = "JupyterLab is not installed: pip install . ./book"
try:
    from nbformat.sign import NotebookNotary
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    from bert_course.check.exercise import EXERCISES
    from bert_course.contents import CHAPTERS, PLACES, Chapter
    from bert_course.parts import MADE_WITH, chapter_of
    from book.make import copies, routes
    from book.make.notebooks import KERNEL, fingerprint, make_exercise, read, write
    from book.make.publish import insert, install_cell, repository_url
    from book.make.serve import port_number
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    sys.exit(f"{NOT_INSTALLED} ({error})")

FOLDER = "my-exercises"
BOOK = "book"  # below it
START = "START.ipynb"
KERNEL_START = str(Path(__file__).with_name("kernel_start.py"))
TO_CHAPTER = re.compile(r"\]\((?:\.\./)?book/(\w+\.ipynb)")  # in an exercise, and in its copy
FORBIDDEN = re.compile(r'[<>:"/\\|?*]')  # in the name of a file, by Windows
OURS = re.compile(r"(?:\d\d|A) .*?(?: \(new ?(\d*)\))?\.ipynb")  # the names that copies get

# JupyterLab's own questions on its first start: whether to fetch news, whether there is a newer version.
SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


# --- Copies ----------------------------------------------------------------------------------------------


def prepare(root: Path) -> list[str]:
    """Bring my-exercises/ up to date with exercises/, and return what there is to say, a line for each file.

    Raises FileNotFoundError where `root` is not the course's folder.
    """
    paths = {chapter.name: root / "exercises" / f"{chapter.name}.ipynb" for chapter in CHAPTERS}
    exercises = {name: path for name, path in paths.items() if path.exists()}
    if not exercises:
        raise FileNotFoundError(f"{root} has no exercises/: run this in the course's folder")
    folder = root / FOLDER
    first = not folder.exists()
    folder.mkdir(exist_ok=True)
    said = rename(folder)
    address = repository_url(root / "_config.yml")
    for name, path in exercises.items():
        mine = read(path)
        solution = root / "solutions" / path.name
        # Of the exercise as it was made, even if somebody has solved it in exercises/.
        mine.metadata[MADE_WITH] = fingerprint(make_exercise(read(solution)) if solution.exists() else mine)
        said += place(anywhere(linked(mine, "book/"), address), folder, copy_stem(name))
    chapters = []
    for path in sorted((root / "book").glob("*.ipynb")):
        mine = read(path)
        copies.for_learner(mine, _exercises_of(path.stem) if path.stem in exercises else "")
        mine.metadata[MADE_WITH] = fingerprint(mine)
        chapters += place(anywhere(mine, address), folder / BOOK, path.stem)
    said += [line for line in chapters if not line.endswith("copied")]
    if len(said) < len(chapters):
        said.append(f"{FOLDER}/{BOOK}/: the chapters are copied")
    place(start_page(root), folder, Path(START).stem)
    if first:
        return [f"{FOLDER}/: the exercises of {len(exercises)} chapters are copied; your answers stay there"]
    return said


def _exercises_of(name: str) -> str:
    """A link from a chapter's copy to the copy of its exercises."""
    count = sum(one.chapter == name for one in EXERCISES.values())
    return f"[{count} exercise{'s' * (count != 1)}](../{quote(copy_stem(name))}.ipynb)"


def anywhere(notebook: Any, address: str) -> Any:
    """The notebook with a folded cell that installs the course, in Colab or Kaggle: copies are handed on."""
    cell = install_cell(address)
    cell.metadata["jupyter"] = {"source_hidden": True}
    notebook.cells = [one for one in notebook.cells if one.id != cell.id]
    insert(cell, notebook.cells)
    return notebook


def linked(notebook: Any, folder: str) -> Any:
    """The notebook with its links to chapters leading to this folder: "book/" in a copy, "../book/" in the original."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = TO_CHAPTER.sub(rf"]({folder}\1", cell.source)
    return notebook


def untouched(notebook: Any) -> bool:
    """Whether a copy's cells are those that it was made with."""
    made = notebook.metadata.get(MADE_WITH)
    return made in (fingerprint(notebook), fingerprint(linked(copy.deepcopy(notebook), "../book/")))


def copy_stem(name: str) -> str:
    """What a chapter's copy is called, without .ipynb: `07 One attention head`."""
    chapter = CHAPTERS[PLACES[name]]
    number = chapter.number.zfill(2) if chapter.number.isdigit() else chapter.number
    return f"{number} {FORBIDDEN.sub('', chapter.title)}"


def rename(folder: Path) -> list[str]:
    """Give today's names to copies whose chapter had another place or another title.

    Which chapter a copy is of, its cells say. A file that has no name of ours, or whose new name is taken, stays.
    Returns a line for each file.
    """
    said = []
    for path in sorted(folder.glob("*.ipynb")):
        named = OURS.fullmatch(path.name)
        chapter = chapter_of(path) if named else None
        if not named or chapter is None:
            continue
        number = 0 if named[1] is None else int(named[1] or 1)  # "" in the first new one's name
        to = folder / f"{copy_stem(chapter)}{_suffix(number)}.ipynb"
        if not to.exists():
            with contextlib.suppress(FileNotFoundError):  # another `make lab` has just done so
                path.rename(to)
            said.append(f"{FOLDER}/{path.name} is now called {to.name}")
    return said


def _suffix(number: int) -> str:
    """What tells a newer version's name from the first."""
    return ["", " (new)"][number] if number < 2 else f" (new {number})"


def place(notebook: Any, folder: Path, stem: str) -> list[str]:
    """Write a notebook as STEM.ipynb, or beside a version that somebody has worked in, as STEM (new).ipynb.

    Its metadata say which version it is. Returns what there is to say of it: nothing if it is there already.
    """
    version = notebook.metadata[MADE_WITH]
    kept = ""
    number = 0
    folder.mkdir(exist_ok=True)
    shown = f"{FOLDER}/" if folder.name == FOLDER else f"{FOLDER}/{folder.name}/"
    while True:
        path = folder / f"{stem}{_suffix(number)}.ipynb"
        number += 1
        if not path.exists():
            write(path, notebook)
            if kept:
                return [f"{shown}{path.name}: a new version; {kept} has your answers and stays as it is"]
            return [f"{shown}{path.name}: copied"]
        there = _read_or_none(path)
        if there is not None:
            if version in (there.metadata.get(MADE_WITH), fingerprint(there)):
                return []
            if untouched(there):
                write(path, notebook)
                return [f"{shown}{path.name}: brought up to date; nobody had begun it"]
        kept = kept or path.name


def _read_or_none(path: Path) -> Any:
    try:
        return read(path)
    except Exception:  # whatever nbformat raises for what is no notebook: it is somebody's all the same
        return None


# --- The page to start from ------------------------------------------------------------------------------

WELCOME = """# Start here

You read a chapter, and then you write its parts yourself. The checks tell you what is right, and which mistake
is behind what is not.

1. Open the first chapter in the table below and read it. You can run its cells with Shift+Enter.
2. Open its exercises and run the first cell. Write your answer where the dots `...` are, run that cell, then run the
   cell with the check.
3. Go on with the next chapter. The order of the table is the order of the course.

*If you have this page without the course, run `pip install . ./book` in the course's folder, then `make lab`.*"""

RULES = """## How the exercises work

- **Your answers are yours.** This folder, `my-exercises`, holds copies. An update of the course never writes over a
  file in which you have worked. If an exercise changes, its new version is put beside yours, with "(new)" in its name.
- **A check** tries your function on several inputs. It shows the first input on which your function is wrong, what
  it returned and what was expected, and often the mistake behind it.
- **Hints** unfold below a wrong result, one after the other, the gentlest first. `check.attend.hint()` shows the
  next one too.
- **A solution** stands behind the last hint, after an attempt. `check.attend.solution()` shows it too.
- **Difficulty** goes from 1 to 3. At 1 you use what the chapter says, in a few lines. At 2 you derive something, or
  combine two ideas. At 3 you find something that the chapter does not tell.
- **Your progress** is kept in this folder. Run the next cell to see it.
- A check that takes long says at which case it is. To stop it, press the square in the toolbar.
- The chapters are copies too, in `my-exercises/book`: run them, change them, save them. `git status` stays clean.
- **A question** in a chapter ("Predict: …") has answers to choose from: press yours to see whether it is right. What
  the code prints is folded below: unfold it, or run the cell."""


def start_page(root: Path) -> Any:
    """A notebook with the order of the chapters, links to them and to the copies, and how the exercises work."""
    rows = ["| chapter | your exercises | difficulty | minutes |", "|---|---|---|---|"]
    rows += [_row(chapter, root) for chapter in CHAPTERS if (root / f"{chapter.page}.ipynb").exists()]
    page = new_notebook(
        cells=[
            new_markdown_cell(WELCOME, id="welcome"),
            new_markdown_cell("## Ways through\n\n" + routes.table(routes.times(root)), id="routes"),
            new_markdown_cell("## The chapters, in their order\n\n" + "\n".join(rows), id="chapters"),
            new_markdown_cell(RULES, id="rules"),
            new_code_cell("from bert_course import check\n\ncheck.progress()", id="progress"),
        ]
    )
    page.metadata["kernelspec"] = KERNEL
    page.metadata[MADE_WITH] = fingerprint(page)
    return page


def _row(chapter: Chapter, root: Path) -> str:
    """A line of the table of chapters."""
    name = f"[{chapter.heading}]({BOOK}/{chapter.name}.ipynb)"
    if not (root / "exercises" / f"{chapter.name}.ipynb").exists():
        return f"| {name} | | | |"
    stem = copy_stem(chapter.name)
    asked = [one for one in EXERCISES.values() if one.chapter == chapter.name]
    easy, hard = min(one.difficulty for one in asked), max(one.difficulty for one in asked)
    level = str(easy) if easy == hard else f"{easy} to {hard}"
    links = f"[{len(asked)} exercises]({quote(stem)}.ipynb)"
    newer = sorted((root / FOLDER).glob(f"{stem} (new*).ipynb"))
    links += "".join(f", [new version]({quote(path.name)})" for path in newer)
    return f"| {name} | {links} | {level} | {sum(one.minutes for one in asked)} |"


# --- JupyterLab ------------------------------------------------------------------------------------------


def trust(root: Path) -> None:
    """Tell Jupyter that the copies nobody has touched may show their stored outputs as they are.

    Until then it shows pictures in place of figures that move. What somebody has run and saved is trusted anyway.
    """
    notary = NotebookNotary()
    for path in [*(root / FOLDER).glob("*.ipynb"), *(root / FOLDER / BOOK).glob("*.ipynb")]:
        notebook = _read_or_none(path)
        if notebook is not None and untouched(notebook):
            notary.sign(notebook)


def command(root: Path, options: Sequence[str], as_root: bool, port: int) -> list[str]:
    """JupyterLab with the course's folder as its root, in a workspace of its own, on the page to start from.

    It says only what goes wrong. Everybody on the machine can read these arguments: the token is not among them.
    """
    page = f"/lab/workspaces/bert-from-nothing/tree/{FOLDER}/{START}"
    return [
        *(sys.executable, "-m", "jupyterlab", "--log-level=WARN", f"--port={port}"),
        *(f"--ServerApp.root_dir={root}", f"--LabApp.default_url={page}"),
        *(["--allow-root"] if as_root else []),
        *options,
    ]


def free_port(first: int = 8888) -> int:
    """A port of this machine that nobody uses, from 8888 on."""
    for port in range(first, first + 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    return first


def environment(own: Path) -> dict[str, str]:
    """JupyterLab's environment: its token, and in the folder `own` its settings and what it writes of itself.

    That is where it is, its cookies' secret, and the page that a browser opens, which has the address with the token.
    """
    settings = own / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(SETTINGS))
    paths = os.pathsep.join(filter(None, [str(own), os.environ.get("JUPYTER_CONFIG_PATH")]))
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_hex(16)
    return {
        "PYTHONSTARTUP": KERNEL_START,
        **os.environ,
        "JUPYTER_CONFIG_PATH": paths,
        "JUPYTER_RUNTIME_DIR": str(own),
        "JUPYTER_TOKEN": token,
    }


def announce(lab: subprocess.Popen[bytes], own: Path) -> None:
    """Say where the page to start from is, once JupyterLab answers there. It writes its port and token into `own`."""
    while lab.poll() is None:
        for path in own.glob("jpserver-*.json"):
            # It may still be being written, and nobody listen yet.
            with contextlib.suppress(ValueError, OSError):
                server = json.loads(path.read_text(encoding="utf-8"))
                socket.create_connection((server["hostname"], server["port"]), timeout=1).close()
                address = f"{server['url']}?token={server['token']}" if server["token"] else server["url"]
                print(f"JupyterLab is at {address}", flush=True)
                print(f"Ctrl-C twice ends it; your answers are in {FOLDER}/", flush=True)
                return
        time.sleep(0.1)


@contextlib.contextmanager
def leaving() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, end this process like an exception."""

    def leave(number: int, frame: Any) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    former = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def stop(lab: subprocess.Popen[bytes]) -> None:
    """End JupyterLab, which ends its kernels."""
    lab.terminate()
    try:
        lab.wait(timeout=10)
    except subprocess.TimeoutExpired:
        lab.kill()


def opened(arguments: Sequence[str]) -> int:
    """Run JupyterLab until it ends, or this process is ended; returns its exit status."""
    with leaving(), tempfile.TemporaryDirectory(prefix="minigrad-lab-", ignore_cleanup_errors=True) as own:
        lab = subprocess.Popen(arguments, env=environment(Path(own)))
        try:
            threading.Thread(target=announce, args=(lab, Path(own)), daemon=True).start()
            while True:
                try:
                    return lab.wait()
                except KeyboardInterrupt:  # JupyterLab got it too, and asks whether to stop
                    continue
        finally:
            if lab.poll() is None:
                stop(lab)


def main(arguments: Any = None) -> int:
    """Copy, then open JupyterLab until it ends; returns its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copy-only", action="store_true", help="do not open JupyterLab")
    parser.add_argument("--port", type=port_number, help="the first free one from 8888 on without it")
    known, options = parser.parse_known_args(arguments)
    root = Path.cwd()
    try:
        said = prepare(root)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(said) or f"{FOLDER}/: up to date", flush=True)
    if known.copy_only:
        return 0
    if importlib.util.find_spec("jupyterlab") is None:
        print(NOT_INSTALLED, file=sys.stderr)
        return 1
    try:
        trust(root)
    except Exception as error:  # the disk's, SQLite's or Jupyter's own: without trust there are pictures
        print(f"Figures move only once their cells are run, as Jupyter cannot note its trust ({error})")
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if as_root:
        print("You are root, which Jupyter refuses unless it is told (--allow-root): it is told.", flush=True)
    print("JupyterLab starts …", flush=True)
    try:
        return opened(command(root, options, as_root, known.port or free_port()))
    except OSError as error:
        print(f"JupyterLab cannot start: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
