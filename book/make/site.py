"""What the site's pages run Python with: put beside the built pages, into `_static/python`.

    python -m book.make.site _build/html _build/python/node_modules

CPython and NumPy as WebAssembly (from the npm packages that book/site/python/package.json names), the course, what it
has stored, and for each page its cells. Everything that is large is compressed here, whatever the server does.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import io
import json
import re
import shutil
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat

import minigrad
from book.make.cell_needs import closed, direct, recorded, split
from book.make.serve import no_site

ROOT = Path(minigrad.__file__).resolve().parent.parent
SOURCES = ROOT / "book" / "site" / "python"

# Of pyodide, which its script asks for by name
CORE = ("pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
NUMPY = "@emscripten-forge/numpy/pkg"
PURE = ("threadpoolctl", "tqdm")  # packages in plain Python, as they are installed here
MOST_BYTES = 15_000_000  # over the wire, before the first cell runs

TRAINED = "minigrad/bert/trained/"

# What pages never import: NumPy's tests and its tools for compiled modules.
LEFT_OUT = re.compile(
    r"(^|/)(tests?|__pycache__|f2py|distutils|include|\.?[^/]*\.dist-info)/"
    r"|\.(pyi|a|h|pxd|pyc|ini|so\.map)$|_(rational|umath|operand_flag|struct_ufunc)_tests\.|_simd\.cpython|/conftest\.py$"
)

PUBLISHED = "native=published"  # the tag of a cell that needs the model of chapter `published`
# Why a cell does not run in a page, by its tag, said to the reader.
REASONS = {
    "native=threads": "This cell starts threads, which a page cannot",
    "native=time": "This cell measures time",
    "native=numbers": "This cell has numbers that depend on the machine, and are others in a page",
    "native=files": "This cell needs files or programs that a page does not have",
    PUBLISHED: "This cell needs the published model, 83 MB that a page does not have",
}
# What merely takes long: the reader decides. `pages_check.py --long` runs these too, `make site-check` does not.
LONG = ("training", "long-training", "native=heavy", "native=slow")
NEEDS_OTHER = "This cell needs a result of a cell above that does not run in a page"
ELSEWHERE = ". It runs in Jupyter; here its stored output stands."
NAMES = "-names"  # behind the id of what a cell names
NEEDS, NEEDS_OF = "needs", "needs_of"  # in the metadata of a cell under "course"; in those of the notebook
QUICK = "page"  # the tag of a cell that trains, but quickly


# --- Cells -----------------------------------------------------------------------------------------------


def parts(notebook: Any) -> Iterator[tuple[str, str, Any, str]]:
    """What runs by itself, in order: id, source, the cell of the notebook, and its key for what is needed.

    Before a cell that does not run in a page, or for long, stands what that only names (`split`), with `NAMES` behind
    its id, for the cells below that need no more of it; its own source is then the rest.
    """
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and cell.source.strip() and "install" not in tags:
            names, rest = split(cell.source) if reason(tags) or takes_long(tags) else ("", cell.source)
            if names:
                yield cell.id + NAMES, names, cell, NEEDS + NAMES
            yield cell.id, rest, cell, NEEDS


def stamp(notebook: Any) -> str:
    """A short text that is another one when a part has another id or source."""
    sources = [(name, source) for name, source, _, _ in parts(notebook)]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:16]


def note_needs(notebook: Any, folder: Path) -> None:
    """Run a notebook as pages do, and note in the metadata of each cell which cells above it needs.

    Noted are those that no other of them needs, and in the notebook's metadata which sources that holds for.
    """
    found = list(parts(notebook))
    may_fail = {cell.id for cell in notebook.cells if "raises-exception" in cell.metadata.get("tags", [])}
    needs = direct(recorded({name: source for name, source, _, _ in found}, folder, may_fail))
    for cell in notebook.cells:
        for key in (NEEDS, NEEDS + NAMES):
            cell.metadata.get("course", {}).pop(key, None)
    for name, _, cell, key in found:
        cell.metadata["course"] = {**cell.metadata.get("course", {}), key: " ".join(needs[name])}
    notebook.metadata[NEEDS_OF] = stamp(notebook)


def to_note(path: str) -> str:
    """What to run for the needs of a notebook in the repository, such as `book/one_head.ipynb`."""
    if path.startswith("exercises/"):
        return f"make notebook NB={path.replace('exercises', 'solutions', 1)} && make map"
    return f"make notebook NB={path}"


def page_cells(notebook: Any, path: str = "") -> list[dict[str, Any]]:
    """The code cells of a notebook as pages get them: source, what each needs, and whether it runs.

    A cell's metadata say what it needs (`note_needs`); `course.random` has seed and draws of `minigrad.random` before
    it, and `course.page_seconds` how long it computes in a page, where that is five seconds and more. `long` is whether
    it, or a cell that it needs, has a tag of `LONG`. Raises ValueError where a cell
    does not say what it needs, or names one that is not above it.
    """
    stored = {name: cell.metadata.get("course", {}).get(key) for name, _, cell, key in parts(notebook)}
    try:
        if None in stored.values():
            raise ValueError(
                f"nothing says what cell {next(one for one in stored if stored[one] is None)} needs"
            )
        needs = closed({name: named.split() for name, named in stored.items()})
    except ValueError as error:
        raise ValueError(f"{path}: {error}: {to_note(path)}") from None
    cells: list[dict[str, Any]] = []
    runs: dict[str, bool] = {}
    long: dict[str, bool] = {}
    for name, source, cell, key in parts(notebook):
        said, why = cell.metadata.get("course", {}), reason(cell.metadata.get("tags", []))
        one = {"id": name, "source": source, "needs": needs[name], "random": None, "runs": True, "seconds": 0}
        long[name] = any(long[other] for other in needs[name])
        if key == NEEDS:
            long[name] |= takes_long(cell.metadata.get("tags", []))
            one |= {"source": cell.source, "random": said.get("random"), "runs": why or True}
            one["seconds"] = said.get("page_seconds", 0)
        if one["runs"] is True and not all(runs[other] for other in needs[name]):
            one["runs"] = NEEDS_OTHER + ELSEWHERE
        cells.append(one | {"long": long[name]})
        runs[name] = one["runs"] is True
    return cells


def tagged(notebook: Any, tags: Iterable[str], seconds: bool = False) -> list[str]:
    """The ids of the cells that have one of these tags, and of those that need one of them.

    seconds: so are those that compute for five seconds and more in a page.
    """
    asked = set(tags)
    found = {cell.id for cell in notebook.cells if asked & set(cell.metadata.get("tags", []))}
    if seconds:
        found |= {cell.id for cell in notebook.cells if "page_seconds" in cell.metadata.get("course", {})}
    for cell in page_cells(notebook):
        if found & {*cell["needs"]}:
            found.add(cell["id"])
    return sorted(found)


def reason(tags: Sequence[str]) -> str:
    """Why a cell with these tags does not run in a page; empty if it does."""
    found = [why for tag, why in REASONS.items() if tag in tags]
    return found[0] + ELSEWHERE if found else ""


def takes_long(tags: Sequence[str]) -> bool:
    """Whether a cell with these tags computes for longer than a reader waits without being asked."""
    return QUICK not in tags and any(tag in tags for tag in LONG)


# --- Archives --------------------------------------------------------------------------------------------


def archive(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A compressed tar file of files by name; the same bytes for the same files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def below(folder: Path, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """The files below a folder by their names from there, without those that pages never need."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not LEFT_OUT.search(name):
            yield prefix + name, path.read_bytes()


def numpy_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """NumPy out of its package. Raises FileNotFoundError where npm has not put it."""
    packages = list(folder.glob("*.tar.gz"))
    if len(packages) != 1:
        raise FileNotFoundError(f"expected one .tar.gz in {folder}, found {len(packages)}: run make site")
    inside = "lib/python3.12/site-packages/"
    with tarfile.open(packages[0]) as tar:
        for entry in tar:
            name = entry.name.removeprefix("./")
            if entry.isfile() and name.startswith(inside) and not LEFT_OUT.search(name):
                file = tar.extractfile(entry)
                assert file is not None
                yield name.removeprefix(inside), file.read()


def pure_files() -> Iterator[tuple[str, bytes]]:
    """The packages in plain Python, with their licences, from where they are installed."""
    for package in PURE:
        for file in importlib.metadata.files(package) or ():
            name = file.as_posix()
            if name.endswith(".py") or "LICEN" in name.upper():
                yield name, Path(str(file.locate())).read_bytes()


def library_files() -> Iterator[tuple[str, bytes]]:
    """minigrad without its model, the course, and the course in one file."""
    yield "solutions/bert.py", (ROOT / "solutions" / "bert.py").read_bytes()
    for name, content in below(ROOT / "minigrad", "minigrad/"):
        if name.endswith((".py", ".js", ".html")) or not name.startswith(TRAINED):
            yield name, content
    yield from below(ROOT / "book" / "bert_course", "book/bert_course/")


def stored_archives() -> Iterator[tuple[str, bytes]]:
    """What the course has stored, each thing by the name under which pages ask for it; no pictures."""
    yield "start", archive(below(ROOT / TRAINED, TRAINED))
    for path in sorted((ROOT / "book" / "records").iterdir()):
        if path.is_dir() and path.name not in ("make", "benchmarks"):
            yield path.name, archive(below(path, f"book/records/{path.name}/"))
        elif path.is_file() and path.suffix != ".png":
            yield path.name, archive([(f"book/records/{path.name}", path.read_bytes())])


# --- The folder ------------------------------------------------------------------------------------------


def assemble(site: Path, packages: Path) -> dict[str, Any]:
    """Write everything into `site`/_static/python; returns what site.json says.

    packages: npm's node_modules. Raises ValueError if it is more than the course allows itself to send.
    """
    target = site / "_static" / "python"
    for name in ("core", "archives", "cells"):
        shutil.rmtree(target / name, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    for name in ("worker.js", "page_python.js"):
        shutil.copyfile(SOURCES / name, target / name)

    def keep(folder: str, name: str, packed: bytes) -> dict[str, Any]:
        stamp = hashlib.sha256(packed).hexdigest()[:12]
        path = target / folder / f"{name}.{stamp}.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(packed)
        return {"path": f"{folder}/{path.name}", "bytes": len(packed)}

    pyodide = packages / "pyodide"
    core = {name: keep("core", name, gzip.compress((pyodide / name).read_bytes(), mtime=0)) for name in CORE}
    shutil.copyfile(pyodide / "pyodide.mjs", target / "core" / "pyodide.mjs")
    known = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    lock = json.dumps({"info": known["info"], "packages": {}})  # the packages that it lists are not here
    (target / "core" / "pyodide-lock.json").write_text(lock, encoding="utf-8")

    foreign = [*numpy_files(packages / NUMPY), *pure_files(), *below(SOURCES / "packages")]
    archives = {
        "packages": keep("archives", "packages", archive(foreign)),
        "course": keep("archives", "course", archive(library_files())),
    }
    data = {name: keep("archives", name, packed) for name, packed in stored_archives()}
    total = sum(one["bytes"] for one in (*core.values(), *archives.values()))
    if total > MOST_BYTES:
        raise ValueError(f"pages would load {total:,} bytes before the first cell; at most {MOST_BYTES:,}")

    for page, path in pages():
        cells = target / "cells" / f"{page}.json"
        cells.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {
                "page": page,
                "cells": page_cells(nbformat.read(path, as_version=4), f"{path.parent.name}/{path.name}"),
            },
            ensure_ascii=False,
        )
        cells.write_text(text, encoding="utf-8")
    stamps = json.dumps([core, archives, data]).encode()
    manifest = {
        "version": hashlib.sha256(stamps).hexdigest()[:12],
        "bytes": total,
        "core": core,
        "archives": archives,
        "data": data,
    }
    (target / "site.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return manifest


def pages() -> Iterator[tuple[str, Path]]:
    """The pages whose cells run, `one_head` and `exercises/one_head`, with their notebooks."""
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        yield path.stem, path
    for path in sorted((ROOT / "exercises").glob("*.ipynb")):
        yield f"exercises/{path.stem}", path


def main(arguments: Any = None) -> int:
    """Assemble the folder; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, help="the built pages")
    parser.add_argument("packages", type=Path, help="npm's node_modules")
    options = parser.parse_args(arguments)
    if why := no_site(options.site):
        print(why, file=sys.stderr)
        return 1
    try:
        manifest = assemble(options.site, options.packages)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Python in the pages: {manifest['bytes'] / 1e6:.1f} MB at the first click")
    return 0


if __name__ == "__main__":
    sys.exit(main())
