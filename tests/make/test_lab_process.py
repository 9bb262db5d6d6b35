"""`make lab` as a process: who can read its token, when it says where it is, and what is left when it ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book.make import notebooks

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-m", "book.make.lab"]
needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course with one chapter and its exercise."""
    exercise = new_notebook(cells=[new_markdown_cell("What to do."), new_code_cell("...")])
    chapter = new_notebook(cells=[new_markdown_cell("# 7. One attention head")])
    for folder, notebook in (("exercises", exercise), ("book", chapter)):
        (tmp_path / "course" / folder).mkdir(parents=True)
        notebooks.write(tmp_path / "course" / folder / "one_head.ipynb", notebook)
    (tmp_path / "course" / "_config.yml").write_text('repository:\n  url: ""\n', encoding="utf-8")
    return tmp_path / "course"


def environment(root: Path, **more: str) -> dict[str, str]:
    """For a process that starts in the course's folder; its temporary files are beside that."""
    (root.parent / "tmp").mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "MINIGRAD"))}
    return own | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}",
        "TMPDIR": str(root.parent / "tmp"),
        **more,
    }


def until(true: Callable[[], object]) -> object:
    """What `true` gives as soon as it is something; fails after a time that a busy machine does not need."""
    end = time.monotonic() + 180
    while not (found := true()):
        assert time.monotonic() < end, "it never was so"
        time.sleep(0.1)
    return found


def arguments_of_its_processes(session: int) -> dict[int, str]:
    """The arguments, and as anybody may read them, of the processes that belong to a session, by their number."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == session:
                found[int(process.name)] = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
    return {number: line for number, line in found.items() if line}


@pytest.fixture
def running(root: Path) -> Iterator[tuple[subprocess.Popen[str], list[str], Path]]:
    """`make lab` when it has said where it is: the process, its lines, and what its browser was started with."""
    browser = root.parent / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {root.parent}/opened\n')
    browser.chmod(0o755)
    lab = subprocess.Popen(
        LAB, cwd=root, env=environment(root, BROWSER=f"{browser} %s", HOME=str(root.parent)), text=True,
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert lab.stdout is not None
    lines: list[str] = []
    try:
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(lab.stdout.readline())
            assert lines[-1], f"it ended: {lines}"
        yield lab, lines, root.parent / "opened"
    finally:
        for number in arguments_of_its_processes(lab.pid):
            os.kill(number, signal.SIGKILL)
        lab.wait()
        lab.stdout.close()


@needs_proc
def test_it_says_where_start_is_shows_nobody_its_token_and_leaves_nothing(running, root):
    lab, lines, opened = running
    address = next(word for word in lines[-2].split() if word.startswith("http"))
    own = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
    with own.open(address) as page:  # at once: it is said when it answers
        assert page.url.partition("?")[0].endswith("/tree/my-exercises/START.ipynb")
    token = address.partition("token=")[2]
    assert len(token) >= 32

    until(opened.exists)  # a browser has been started, by JupyterLab
    processes = arguments_of_its_processes(lab.pid)
    assert len(processes) >= 2
    shown = "\n".join([*processes.values(), opened.read_text()])
    assert "jupyterlab" in shown
    assert token not in shown
    (folder,) = (root.parent / "tmp").glob("minigrad-lab-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    page = Path(urllib.request.url2pathname(opened.read_text().strip().removeprefix("file://")))
    assert folder in page.parents  # what the browser opens is in nobody else's reach, and leads on
    assert token in page.read_text()

    lab.send_signal(signal.SIGTERM)
    assert lab.wait(timeout=90) == 128 + signal.SIGTERM
    until(lambda: not arguments_of_its_processes(lab.pid))
    assert list((root.parent / "tmp").glob("minigrad-lab-*")) == []


def test_two_at_the_first_time_at_once(root):
    for number in range(20):
        chapter = new_notebook(cells=[new_markdown_cell(f"# {number}")])
        notebooks.write(root / "book" / f"chapter_{number}.ipynb", chapter)
    both = [
        subprocess.Popen(
            [*LAB, "--copy-only"], cwd=root, env=environment(root), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [one.communicate(timeout=300)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert len(list((root / "my-exercises" / "book").iterdir())) == 21


@pytest.mark.parametrize("missing", ["nbformat", "nbclient"])
def test_without_jupyter_it_says_what_to_install(missing, root):
    script = (
        f"import sys, runpy; sys.modules[{missing!r}] = None; sys.argv = ['lab', '--copy-only']\n"
        "runpy.run_module('book.make.lab', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, env=environment(root), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install . ./book" in done.stderr


def test_a_home_that_cannot_be_written_is_said_in_one_line(root):
    """It is about colours alone: JupyterLab starts."""
    script = (
        "import subprocess, sys\n"
        "from book.make import lab\n"
        "lab.command = lambda *a: [sys.executable, '-c', 'print(\"started\")']\n"
        "sys.exit(lab.main([]))"
    )
    (root.parent / "file").write_text("no folder")
    own = environment(root, HOME=str(root.parent / "file" / "home"))
    own = {name: value for name, value in own.items() if not name.startswith("XDG")}
    done = subprocess.run([sys.executable, "-c", script], cwd=root, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("trust (") == 1
    assert "started" in done.stdout.splitlines()
