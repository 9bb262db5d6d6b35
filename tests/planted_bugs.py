"""Forty bugs, planted one at a time by seeded random edits of the code, and which tests find them.

    python tests/planted_bugs.py draw --record tests/planted_bugs.json     # once, before a move
    python tests/planted_bugs.py run --record tests/planted_bugs.json --as before
    python tests/planted_bugs.py run --record tests/planted_bugs.json --as after

A bug is one line of code and what stands in its place: `<` for `<=`, `+` for `-`, a constant that is one more, `or` for
`and`, a condition that is turned round. It is kept by the name of its file and by its lines, so that it is found again
wherever the file has moved; code that is no longer there is said, and is no bug that was lost.
"""

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from minigrad.files import write_atomic

# Of each room: how many bugs, and the tests that are asked.
ROOMS = {
    "backend graph.py tensor.py ops nn optim.py random.py files.py distributed.py": (
        12,
        "tests/test_*.py backend ops nn",
    ),
    "text stories training": (6, "text stories training"),
    "bert seq2seq": (7, "bert seq2seq training"),
    "check grade exercises": (6, "check grade exercises"),
    "common furniture chapters contents.py": (5, "furniture common chapters book"),
    "_make make _ext ext": (4, "make book"),
}
TURNED = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)]
TURNED += [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)]
SWAPS: dict[type, type] = {**dict(TURNED), **{new: old for old, new in TURNED}, ast.FloorDiv: ast.Mult}


def sources() -> list[Path]:
    """Every Python file of the library, the course and the authors' tools that git knows."""
    known = subprocess.run(
        ["git", "ls-files", "minigrad/*.py", "book/*.py"], capture_output=True, text=True, check=True
    )
    return [Path(line) for line in known.stdout.split()]


def edits(node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Each expression in a tree that can be made wrong, and the wrong one; (old, new) pairs."""
    found: list[tuple[ast.AST, ast.AST]] = []
    for one in ast.walk(node):
        if isinstance(one, ast.Compare) and type(one.ops[0]) in SWAPS:
            found.append(
                (one, ast.Compare(one.left, [SWAPS[type(one.ops[0])](), *one.ops[1:]], one.comparators))
            )
        elif isinstance(one, ast.BinOp) and type(one.op) in SWAPS:
            found.append((one, ast.BinOp(one.left, SWAPS[type(one.op)](), one.right)))
        elif isinstance(one, ast.BoolOp):
            found.append((one, ast.BoolOp(SWAPS[type(one.op)](), one.values)))
        elif isinstance(one, ast.Constant) and type(one.value) in (int, float):
            found.append((one, ast.Constant(one.value + 1)))
        elif isinstance(one, ast.Constant) and isinstance(one.value, bool):
            found.append((one, ast.Constant(not one.value)))
        elif isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not):
            found.append((one, one.operand))
        elif isinstance(one, (ast.If, ast.IfExp)) and "TYPE_CHECKING" not in ast.dump(one.test):
            found.append((one.test, ast.UnaryOp(ast.Not(), one.test)))
    return found


def candidates(path: Path) -> list[dict[str, str]]:
    """The bugs of a file whose edit lies on one line, within a function's body."""
    text = path.read_text()
    lines = text.splitlines()
    bugs = []
    for function in (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef)):
        for old, new in (pair for statement in function.body for pair in edits(statement)):
            if old.lineno != old.end_lineno:  # type: ignore[attr-defined]
                continue
            line = lines[old.lineno - 1]  # type: ignore[attr-defined]
            raw = line.encode()
            wrong = b"%b(%b)%b" % (
                raw[: old.col_offset],
                ast.unparse(new).encode(),
                raw[old.end_col_offset :],
            )  # type: ignore[attr-defined]
            bug = {
                "file": path.name,
                "path": str(path),
                "function": function.name,
                "old": line,
                "new": wrong.decode(),
            }
            if text.count(line + "\n") == 1 and bug not in bugs and "f'" not in line and 'f"' not in line:
                bugs.append(bug)
    return bugs


def draw(record: Path, seed: int) -> None:
    """As many bugs of each room as `ROOMS` says, at most one in a file."""
    rng = random.Random(seed)
    bugs = []
    for rooms, (number, tests) in ROOMS.items():
        files = [path for path in sources() if set(rooms.split()) & set(path.parts) and candidates(path)]
        weights = [len(path.read_text().splitlines()) for path in files]
        chosen: list[Path] = []
        while len(chosen) < number:
            path = rng.choices(files, weights)[0]
            if path not in chosen:
                chosen.append(path)
        bugs += [{**rng.choice(candidates(path)), "tests": tests} for path in chosen]
    write_atomic(record, json.dumps({"seed": seed, "bugs": bugs}, indent=1).encode() + b"\n")


def place(bug: dict[str, str]) -> Path | None:
    """The file that has a bug's line now, wherever it has moved."""
    here = [
        path
        for path in sources()
        if path.name == bug["file"] and path.read_text().count(bug["old"] + "\n") == 1
    ]
    same = [path for path in here if path.parent.name == Path(bug["path"]).parent.name]
    return (same or here or [None])[0]


def asked(words: str) -> list[str]:
    """The folders of tests with these names, and the files of these patterns."""
    folders = [path for path in Path("tests").rglob("*") if path.is_dir() and path.name in words.split()]
    return [str(path) for path in folders] + [
        str(path) for word in words.split() if "*" in word for path in Path().glob(word)
    ]


def first_red(tree: Path, tests: list[str], workers: int) -> str:
    """The first test that is red in a tree, or ""."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-n",
        str(workers),
        *tests,
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'book'}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    told = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True
    ).stdout.splitlines()
    return next((line.split(" - ")[0] for line in told if line.startswith(("FAILED", "ERROR"))), "")


def run(record: Path, label: str, workers: int) -> None:
    """Plant each bug in a work tree of its own, and note the first test that is red; goes on where it was stopped.

    Tests whose file is named as the code's are asked first.
    """
    told = json.loads(record.read_text())
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "-q", tree], check=True)
        try:
            for number, bug in enumerate(told["bugs"], 1):
                if label in bug:
                    continue
                path, start = place(bug), time.perf_counter()
                if path is None:
                    bug[label] = "its line is no longer there"
                else:
                    before = (tree / path).read_text()
                    (tree / path).write_text(before.replace(bug["old"] + "\n", bug["new"] + "\n"))
                    named = [str(one) for one in Path("tests").rglob(f"test_*{path.stem.strip('_')}*.py")]
                    red = (named and first_red(tree, named, workers)) or first_red(
                        tree, asked(bug["tests"]), workers
                    )
                    bug[label] = red or "survived"
                    (tree / path).write_text(before)
                print(
                    f"{number}: {bug['path']}: {bug[label]} ({time.perf_counter() - start:.0f} s)", flush=True
                )
                write_atomic(record, json.dumps(told, indent=1).encode() + b"\n")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["draw", "run"])
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--as", dest="label", default="before")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.command == "draw":
        draw(arguments.record, arguments.seed)
    else:
        run(arguments.record, arguments.label, arguments.workers)
