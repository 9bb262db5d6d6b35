"""The command by which instructors grade in a container, as their page prints it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from classes import ROOT, environment, filled

pytestmark = pytest.mark.no_arrays


def works():
    """Whether there is bubblewrap, and the system lets it make containers."""
    if shutil.which("bwrap") is None:
        return False
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"]
    return subprocess.run(command, capture_output=True, timeout=20).returncode == 0


def test_the_workflow_grades_in_the_same_container():
    page, workflow = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("book/instructors.md", ".github/workflows/instructor.yml")
    )
    printed, run = (
        re.findall(r"bwrap --ro-bind .*?-m bert_course.grade", text, re.DOTALL) for text in (page, workflow)
    )
    words = [[re.sub(r".*/python", "python", word) for word in shlex.split(one)] for one in (*printed, *run)]
    assert len(words) == 2
    assert words[0] == words[1]
    assert workflow.count("bert_course.grade") == 1  # and nowhere without it


@pytest.mark.skipif(not works(), reason="needs bubblewrap (apt-get install bubblewrap), and leave to use it")
def test_the_printed_command_grades(tmp_path):
    """As printed, but with this Python, and its empty folder elsewhere: this test's own lies in /tmp."""
    page = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"```sh\n(mkdir -p grades\nbwrap .*?)```", page, re.DOTALL)
    command = printed.replace("/tmp", "/var/tmp").replace(".venv/bin/python", shlex.quote(sys.executable))
    tries = (
        "def score_scale(*_):\n    found = []\n    import pathlib\n"
        "    for place in ('/usr/x', {place!r}, '/var/tmp/x'):\n"
        "        try: pathlib.Path(place).mkdir()\n"
        "        except Exception as error: found.append(type(error).__name__)\n"
        "    processes = [one for one in pathlib.Path('/proc').iterdir() if one.name.isdigit()]\n"
        "    raise ValueError(found, len(processes) < 10)\n"
    ).replace("{place!r}", repr(str(tmp_path / "x")))
    path = tmp_path / "handed-in" / "anna" / "one_head.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(filled("one_head", {"score_scale": tries})))
    variables = environment() | {"TMPDIR": "/var/tmp"}
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "grades" / "grades.csv").read_text(encoding="utf-8")
    assert '"anna","anna/one_head.ipynb","score_scale","no",' in table
    assert "ValueError: (['PermissionError', 'PermissionError', 'PermissionError'], True)" in table, table
