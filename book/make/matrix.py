"""The stored outputs against other Pythons, BLAS kernels and numbers of threads: `python -m book.make.matrix`.

Each row of ROWS is one `pytest --nbval` over a copy of the notebooks, in an environment of its own below .venv/.
OpenBLAS picks its kernels by the processor; OPENBLAS_CORETYPE makes it use those of another. Cells with the tag
`training` are run but not compared with the kernel that differs most: there rounding grows with each step. Ends with a
table, and with status 1 if an output differed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("book", "solutions", "exercises")
NEEDS = ("matplotlib", "ipykernel", "nbformat", "nbval", "pytest")


class Row(NamedTuple):
    """One configuration; `python` "" is the one that runs this, `kernel` "" the one that OpenBLAS picks."""

    python: str
    kernel: str
    threads: int
    training: bool = True


ROWS = [
    Row("", "", 2),
    Row("", "Haswell", 1),
    Row("3.12", "Haswell", 2),
    Row("3.13", "", 1),
    Row("", "Prescott", 2, training=False),
]


def find_python(version: str) -> str | None:
    """An interpreter of this version, on the path or among pyenv's; None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in filter(None, candidates):
        ask = [str(candidate), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(ask, capture_output=True, text=True).stdout.strip() == version:
            return str(candidate)
    return None


def environment(version: str) -> Path | None:
    """The Python of an environment that can run the notebooks, made on first use; None if this machine has no such."""
    if not version:
        return Path(sys.executable)
    python = ROOT / ".venv" / "matrix" / version / "bin" / "python"
    if not python.exists():
        base = find_python(version)
        if base is None:
            return None
        print(f"making an environment with Python {version} …", flush=True)
        subprocess.run([base, "-m", "venv", str(python.parents[1])], check=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-e", str(ROOT), *NEEDS], check=True)
    # Font cache
    subprocess.run([str(python), "-c", "import matplotlib.pyplot"], check=True, capture_output=True)
    return python


def copy_notebooks(folder: Path, training: bool) -> None:
    """The notebooks and the comparison, in `folder`; without `training`, such cells are run and not compared."""
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name in FOLDERS:
        for path in sorted((ROOT / name).glob("*.ipynb")):
            (folder / name).mkdir(exist_ok=True)
            notebook = json.loads(path.read_text(encoding="utf-8"))
            for cell in notebook["cells"]:
                tags = cell["metadata"].get("tags", [])
                if "training" in tags and not training:
                    cell["metadata"]["tags"] = [*tags, "nbval-ignore-output"]
            (folder / name / path.name).write_text(json.dumps(notebook), encoding="utf-8")


def run(row: Row) -> tuple[str, bool]:
    """What to say of a row, and whether all went well."""
    python = environment(row.python)
    if python is None:
        return "this Python is not on this machine", True
    with tempfile.TemporaryDirectory() as name:
        copy_notebooks(Path(name), row.training)
        threads = str(row.threads)
        settings = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        if row.kernel:
            settings["OPENBLAS_CORETYPE"] = row.kernel
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
        start = time.monotonic()
        done = subprocess.run(
            [*command, "--nbval", "--nbval-current-env", "--nbval-cell-timeout=1200", "."],
            cwd=name,
            capture_output=True,
            text=True,
            env={**os.environ, **settings},
        )
    if done.returncode:
        print(done.stdout[-8000:], done.stderr[-2000:], sep="\n")
    count = re.search(r"\d+ (?:passed|failed|error).*?(?= in [\d.]+s)", done.stdout)
    said = count.group() if count else f"pytest ended with status {done.returncode}"
    return f"{said}, {time.monotonic() - start:.0f} s", done.returncode == 0


def main() -> int:
    """Run all rows and print the table; the exit status says whether every output was as stored."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    table, status = [("Python", "BLAS kernel", "threads", "cells")], 0
    for row in ROWS:
        said, good = run(row)
        status |= not good
        if not row.training:
            said += " (training cells not compared)"
        table.append((row.python or here, row.kernel or "its own", str(row.threads), said))
        print("  ".join(table[-1]), flush=True)
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    print()
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    return status


if __name__ == "__main__":
    sys.exit(main())
