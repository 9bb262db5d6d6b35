"""Each chapter and solution as a reader who downloads it: alone in an empty folder, beside an installed
minigrad, its outputs as stored and its shape comments true.

The notebooks run in forks of one process (rerun.py), in the kernel of the site's pages; `make nbval` runs them in
Jupyter's own, and exercises, which are their solutions without the answers. Cells that compute for long (tags
`long-training` and `long`, and `course.page_seconds`), and cells that need them, are left to the slow tests, which run
those notebooks whole.
"""

from __future__ import annotations

import email
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from building import ROOT
from filelock import FileLock

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")

from bert_course.common.published_model import PACKAGE  # noqa: E402
from book.make.site import PUBLISHED, tagged  # noqa: E402

pytestmark = pytest.mark.numpy_only("a notebook chooses its backend itself")

PATHS = [path for folder in ("book", "solutions") for path in sorted((ROOT / folder).glob("*.ipynb"))]
LONG = {"long-training", "long"}
BESIDE = {"encoder", "pretraining"}  # puts together what a learner has written in the notebooks beside it


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder with minigrad as its wheel installs it, made from a copy of the source, once for all processes."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "installed"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            install(tmp_path_factory.mktemp("source"), shared)
    return shared


def install(source: Path, target: Path) -> None:
    """Build the wheels of a copy of the repository, without an index, and put what is in them into `target`."""
    for name in ("pyproject.toml", "README.md", "LICENSE", "book/pyproject.toml", "solutions/bert.py"):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    for name in ("minigrad", "book/bert_course", "book/records"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(source / "wheels")]
    subprocess.run([*build, str(source), str(source / "book")], check=True)
    wheels = sorted(map(str, (source / "wheels").glob("*.whl")))
    assert len(wheels) == 2
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--target", str(target), *wheels], check=True)
    shutil.copytree(source / "wheels", target / "wheels")


@pytest.fixture(scope="session")
def rerun(installed: Path) -> Iterator[Callable[..., list[str]]]:
    """`rerun(path, folder, left_out)`: what is wrong when a notebook runs in a folder without some cells."""
    command = [sys.executable, str(Path(__file__).parent / "rerun.py")]
    environment = {**os.environ, "PYTHONPATH": str(installed), "OPENBLAS_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, cwd=installed, stdin=pipe, stdout=pipe, text=True
    ) as runner:

        def ask(path: Path, folder: Path, left_out: Sequence[str] = ()) -> list[str]:
            asked = {"path": str(path), "folder": str(folder), "left_out": list(left_out)}
            print(json.dumps(asked), file=runner.stdin, flush=True)
            return json.loads(runner.stdout.readline() or '["the process of notebooks has ended"]')

        yield ask


def has_long_cells(path: Path) -> bool:
    """Whether a cell of the file is long; to read a hundred notebooks whole takes a second in each process."""
    text = path.read_text("utf-8")
    return any(f'"{word}"' in text for word in (*LONG, "page_seconds"))


def left_out(path: Path, quick: bool) -> list[str]:
    """The ids of long cells, if it shall be quick, and of those without their model; and of those that need them."""
    missing = set() if importlib.util.find_spec(PACKAGE) else {PUBLISHED}
    return tagged(nbformat.read(path, as_version=4), missing | (LONG if quick else set()), seconds=quick)


def placed(path: Path, folder: Path) -> Path:
    """A copy of the notebook in a folder, with those of its neighbours that it reads."""
    for one in path.parent.glob("*.ipynb") if path.stem in BESIDE else [path]:
        shutil.copy(one, folder)
    return folder / path.name


def of_folder(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", PATHS, ids=of_folder)
def test_a_notebook_does_what_it_did(path: Path, rerun: Callable[..., list[str]], tmp_path: Path):
    copy = placed(path, tmp_path)
    names = set(os.listdir(tmp_path))
    assert rerun(copy, tmp_path, left_out(path, quick=True)) == []
    assert set(os.listdir(tmp_path)) == names, "it left files behind"


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in PATHS if has_long_cells(path)], ids=of_folder)
def test_a_notebook_with_its_long_cells_does_what_it_did(
    path: Path, rerun: Callable[..., list[str]], tmp_path: Path
):
    assert rerun(placed(path, tmp_path), tmp_path, left_out(path, quick=False)) == []


@pytest.mark.parametrize(
    ("name", "package"), [("minigrad-bert", "minigrad"), ("bert-from-nothing", "bert_course")]
)
def test_a_wheel_says_what_it_is(name: str, package: str, installed: Path):
    (information,) = installed.glob(f"{name.replace('-', '_')}-*.dist-info")
    found = email.message_from_string((information / "METADATA").read_text(encoding="utf-8"))
    assert (found["Name"], found["License-Expression"]) == (name, "MIT AND CC-BY-4.0")
    assert "The minigrad authors" in (found["Author"] or found["Author-email"])
    asked = found.get_all("Requires-Dist") or []
    # Neither asks an index for the other
    assert not [one for one in asked if "minigrad" in one or "bert" in one]
    assert (information / "top_level.txt").read_text().split() == [package]
    if package == "minigrad":
        assert (information / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_library_is_small(installed: Path):
    (wheel,) = (installed / "wheels").glob("minigrad_bert-*.whl")
    assert wheel.stat().st_size < 2_500_000  # 2 MB of it are the model of `fill-mask`


def test_the_wheels_have_no_tools_of_authors_and_need_none(installed: Path):
    assert not (installed / "book").exists()
    assert not list((installed / "bert_course" / "records").rglob("*.py"))
    modules = [path for name in ("minigrad", "bert_course") for path in (installed / name).rglob("*.py")]
    assert len(modules) > 150
    tools = re.compile(r"^\s*(from|import) book\b", re.M)
    assert [path.name for path in modules if tools.search(path.read_text("utf-8"))] == []


@pytest.mark.slow
def test_the_library_alone_runs_the_tests_of_the_engine(installed: Path, tmp_path: Path):
    """Without the course on the path: the engine's tests ask for nothing else."""
    shutil.copytree(installed / "minigrad", tmp_path / "minigrad")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    files = [f"tests/{name}" for name in ("nn", "test_tensor.py", "test_graph.py", "test_optim.py")]
    code = (
        "import sys; sys.modules['bert_course'] = None; import minigrad, pytest; "
        "assert minigrad.__file__.startswith(sys.argv[1]); sys.exit(pytest.main(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), "-q", "-x", "-p", "no:cacheprovider", *files]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:]
