"""The layout: which module may import which, who may use NumPy, and what lies where."""

from __future__ import annotations

import ast
import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import minigrad

pytestmark = pytest.mark.no_arrays

ROOT = Path(minigrad.__file__).resolve().parent.parent
FILES = sorted((ROOT / "minigrad").rglob("*.py"))
COURSE = sorted((ROOT / "book" / "bert_course").rglob("*.py"))
MAKERS = sorted((ROOT / "book" / "make").rglob("*.py"))

# From the ground up; a layer may import those below it, and its own.
LAYERS = [
    {"files", "messages"},
    {"backend"},
    {"graph"},
    {"tensor"},
    {"ops"},
    {"random", "testing", "distributed"},
    {"nn", "optim"},
    {"profiler"},
    {"text"},
    {"stories"},
    {"training"},
    {"bert"},
    {"seq2seq"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}

TOP_LEVEL = {
    ".ci", ".gitattributes", ".github", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE",
    "Makefile", "README.md", "_config.yml", "_toc.yml", "book", "conftest.py", "constraints.txt", "exercises",
    "minigrad", "pyproject.toml", "requirements.txt", "solutions", "tests",
}  # fmt: skip

# Inside of bert_course/, in the same way.
ROOMS = ["contents", "stored", "common", "check", "exercises", "parts", "one_file", "chapters", "grade"]


@functools.cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree, made once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    """A file's path as complaints have it."""
    return str(path.relative_to(ROOT))


@functools.cache
def imports(path: Path) -> set[str]:
    """The modules that a file imports, dotted: `from minigrad import ops` gives "minigrad.ops"."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer_of(path: Path) -> str:
    """ "ops" for minigrad/ops/shapes.py, "nn" for minigrad/nn/module.py."""
    return path.relative_to(ROOT / "minigrad").parts[0].removesuffix(".py")


def test_dependencies_point_one_way():
    wrong = []
    for path in FILES:
        if path == ROOT / "minigrad" / "__init__.py":
            continue  # the package's front gathers names from every layer of the engine
        own = layer_of(path)
        assert own in HEIGHT, f"{own} has no place in LAYERS"
        for name in imports(path):
            if name.startswith("minigrad."):
                other = name.split(".")[1]
                # `from minigrad import Tensor` goes through the front, which only what is above the engine may do
                below = HEIGHT.get(other, HEIGHT["optim"]) < HEIGHT[own]
                if not below and other != own and {own, other} != {"optim", "nn"}:
                    wrong.append(f"{named(path)} imports {name}")
    assert wrong == []


def place_of(name: str) -> tuple[str, str]:
    """The room of a module below bert_course, and what it is called there: ("chapters", "mlm_lottery")."""
    room, *rest = name.split(".")[1:]
    return room, rest[0] if room == "chapters" and rest else ""


CHAPTERS = {path.stem for path in (ROOT / "book").glob("*.ipynb")}


def chapter_of(module: str) -> str:
    """The chapter that a module of chapters/ belongs to, by its name: "mlm" for mlm_lottery."""
    return next((stem for stem in CHAPTERS if module == stem or module.startswith(f"{stem}_")), module)


def test_walls_inside_of_the_course():
    """Contents < common < checks < exercises < parts < chapters < grading; no chapter imports another's module."""
    wrong = []
    for path in COURSE:
        if path.parent.name == "bert_course" and path.stem == "__init__":
            continue
        own, module = place_of(".".join(path.relative_to(ROOT / "book").with_suffix("").parts))
        for name in imports(path):
            if not name.startswith("bert_course."):
                continue
            room, other = place_of(name)
            up = ROOMS.index(room) > ROOMS.index(own)
            beside = own == room == "chapters" and other and chapter_of(other) != chapter_of(module)
            front = (own, room) == (
                "check",
                "exercises",
            ) and path.stem == "__init__"  # check.attend is an exercise
            if (up and not front) or beside:
                wrong.append(f"{named(path)} imports {name}")
    assert wrong == []


WORDS_OF_THE_COURSE = re.compile(r"\b(bert_course|course|chapters?|exercises?)\b", re.IGNORECASE)


def test_the_library_knows_of_no_course():
    """It is a library, which a course happens to use."""
    found = {named(path): WORDS_OF_THE_COURSE.findall(path.read_text(encoding="utf-8")) for path in FILES}
    assert {name: words for name, words in found.items() if words} == {}


def test_checks_and_grading_load_no_figure_library():
    """It would cost each exercise's kernel and each grading run half a second, and fail where there is none."""
    code = "import sys; from bert_course import check; import bert_course.grade.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "bert_course.exercises.one_head" in loaded
    assert not loaded & {"matplotlib", "bert_course.common.figures"}


def private_names_used(tree: ast.Module) -> set[str]:
    """The names with one leading underscore that a file asks of others: it defines them nowhere itself."""
    own, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute):
            (own if isinstance(node.ctx, ast.Store) else used).add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            used |= {alias.name for alias in node.names}
    return {name for name in used - own if name.startswith("_") and not name.startswith("__")}


PRIVATE = {  # used from outside all the same
    "_exit",  # os's: it is documented
    "_get_help_string",  # argparse's: it has no public name
    "_replace",  # a named tuple's: its documentation says that it is public
    "_repr_html_",  # Jupyter's name for what a notebook shows
}


def test_private_names_stay_in_their_file():
    found = {named(path): private_names_used(parsed(path)) - PRIVATE for path in [*FILES, *COURSE, *MAKERS]}
    assert {name: names for name, names in found.items() if names} == {}


def test_pages_show_and_use_public_names_alone():
    found = {}
    for path in (path for folder in ("book", "solutions") for path in (ROOT / folder).glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        plain = [line for text in code for line in text.splitlines() if not line.startswith(("%", "!"))]
        found[named(path)] = private_names_used(ast.parse("\n".join(plain))) - PRIVATE
    assert len(found) > 50
    assert {name: names for name, names in found.items() if names} == {}


def test_no_file_imports_itself_by_way_of_others():
    """Also for types alone: two files that need each other are one room with a wall through it."""
    modules = {
        ".".join(path.relative_to(top).with_suffix("").parts): path
        for top, paths in ((ROOT, FILES), (ROOT / "book", COURSE))
        for path in paths
    }
    needs = {
        name: {
            other
            for other in imports(path) | {one.rpartition(".")[0] for one in imports(path)}
            if other in modules
        }
        for name, path in modules.items()
    }
    while free := {name for name, others in needs.items() if not others & set(needs)}:
        needs = {name: others for name, others in needs.items() if name not in free}
    assert needs == {}


def test_the_front_imports_the_engine_alone():
    names = {name.partition(".")[2].partition(".")[0] for name in imports(ROOT / "minigrad" / "__init__.py")}
    assert not names & {"text", "stories", "training", "bert", "seq2seq"}


ORACLES = {"torch", "transformers", "tokenizers", "tensorflow", "jax", "scipy", "hypothesis", "pytest"}
OF_CUPY = [
    ROOT / "minigrad" / "backend" / name for name in ("cublas.py", "cupy.py", "cupy_graph.py", "nccl.py")
]
OPERATIONS = [path for path in FILES if path.parent.name == "ops"]


def importing(paths: list[Path], packages: set[str]) -> list[str]:
    """The files that import one of these packages."""
    return [named(path) for path in paths if packages & {name.partition(".")[0] for name in imports(path)}]


def test_oracles_are_not_imported():
    """PyTorch and its kin are what this is held against, never what it is made of."""
    assert importing([*FILES, *COURSE], ORACLES) == []


def test_cupy_is_imported_by_its_backend_alone():
    assert importing([path for path in [*FILES, *COURSE] if path not in OF_CUPY], {"cupy", "cupyx"}) == []


def test_operations_do_not_import_numpy():
    """The array module is the array's: NumPy's would fail, or copy, on a GPU."""
    assert len(OPERATIONS) >= 5
    assert importing(OPERATIONS, {"numpy"}) == []


def test_operations_do_not_ask_which_backend_they_are_on():
    """They may ask NumPy's for work on the host (shapes, ids), never compare names."""
    for path in OPERATIONS:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Compare):
                texts = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                assert not texts & {"numpy", "cupy"}, f"{path.name}, line {node.lineno}"


def test_every_operation_defines_its_backward_inside():
    """Forward and backward side by side: each from_op gets the `backward` of the function around it."""
    for path in OPERATIONS:
        for function in parsed(path).body:
            if not isinstance(function, ast.FunctionDef):
                continue
            calls = [
                node
                for node in ast.walk(function)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "from_op"
            ]
            inner = {node.name for node in function.body if isinstance(node, ast.FunctionDef)}
            assert bool(calls) == ("backward" in inner), f"{path.name}: {function.name}"
            for call in calls:
                assert isinstance(call.args[2], ast.Name), f"{path.name}: {function.name}"
                assert call.args[2].id == "backward", f"{path.name}: {function.name}"


# What these make of a function is no function: an exercise, whose text is a notebook's, and an erratum's run.
DATA = {"exercise", "erratum"}


def undocumented(path: Path, node: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The public names of a file without a docstring, and the file if it has none."""
    if isinstance(node, ast.Module) and node.body and not ast.get_docstring(node):
        yield named(path)
    for child in node.body:
        if not isinstance(child, ast.FunctionDef | ast.ClassDef) or child.name.startswith("_"):
            continue
        decorators = {getattr(getattr(one, "func", None), "id", "") for one in child.decorator_list}
        # A block of a kernel is the formula of the function above it, which says what it is.
        block = child.name.endswith("_block") and path.parent.name == "backend"
        if not (ast.get_docstring(child) or block or decorators & DATA):
            yield f"{named(path)}, line {child.lineno}: {child.name}"
        if isinstance(child, ast.ClassDef):
            yield from undocumented(path, child)


def test_every_module_and_public_name_says_what_it_is():
    assert [found for path in [*FILES, *COURSE, *MAKERS] for found in undocumented(path, parsed(path))] == []


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("bert_course.common.figures", "matplotlib"),
        ("book.make.notebooks", "nbformat"),
        ("book.make.notebooks", "nbclient"),
    ],
)
def test_what_needs_another_package_says_which(module, package):
    code = f"import sys; sys.modules[{package!r}] = None; import {module}"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    last = result.stderr.strip().splitlines()[-1]
    assert package in last.partition(": pip install ")[2].split(), result.stderr


# On PyPI the name minigrad is a stranger's. Ours is minigrad-bert, which nobody else has, but nothing is uploaded.
LOOKED_UP = (
    re.compile(r"\bminigrad(-bert)?\[(?![^\]]*\] @ git\+)"),
    re.compile(
        r"\b(pipx?|pip3|uv|micropip)\b[^\n]{0,30}\b(install|run|add)\b[^\n`;]*?[\s'\"`(](minigrad(-bert)?|bert-from-nothing)"
        r"(?=[\s'\"`)=<>~!;,\\]|$)(?! @ git\+)",
        re.MULTILINE,
    ),
)
TEXTS = {
    ".py",
    ".md",
    ".ipynb",
    ".toml",
    ".js",
    ".mjs",
    ".html",
    ".yml",
    ".yaml",
    ".cff",
    ".txt",
    ".sh",
    ".cfg",
    "",
}


def looked_up(text: str) -> list[str]:
    """The places of a text that would let pip look for a package of our name."""
    return [found[0] for pattern in LOOKED_UP for found in pattern.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'minigrad[mpi]'",
        "pip install bert-from-nothing",
        "%pip install -q minigrad-bert",
        'micropip.install("minigrad")',
        "python -m pip install --upgrade minigrad==0.1.0",
        "minigrad-bert[mpi]",
    ],
)
def test_a_look_up_of_our_name_is_seen(text):
    assert looked_up(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install -e .",
        "pip install -q 'minigrad-bert @ git+https://example.org/a/b'",
        "pip install -q 'bert-from-nothing @ git+https://example.org/a/b#subdirectory=book'",
        "pip install filelock  # which minigrad.bert needs",
        "It is a package of its own: `pip install .` installs it; `import minigrad` then works",
    ],
)
def test_what_looks_up_no_name_of_ours_is_free(text):
    assert not looked_up(text)


def test_nothing_lets_pip_look_up_our_name():
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split("\0")
    paths = [ROOT / name for name in tracked if name] or [
        path
        for folder in ("minigrad", "book", "solutions", "exercises")
        for path in (ROOT / folder).rglob("*")
    ]
    texts = [
        path for path in paths if path.suffix in TEXTS and path.is_file() and path != Path(__file__).resolve()
    ]
    assert len(texts) > 500
    found = {str(path): looked_up(path.read_text(encoding="utf-8", errors="replace")) for path in texts}
    assert {path: places for path, places in found.items() if places} == {}


def test_actions_are_pinned_by_commit():
    """A tag can be moved to other code; the comment says which version it is."""
    used = [
        line.strip()
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert len(used) >= 8
    for line in used:
        assert re.fullmatch(r"(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line), line


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_that_fails_is_seen(path):
    """One that may fail is green whatever happens, so nobody looks."""
    assert not re.search(r"continue-on-error: *[^f\s]", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_runs_code_of_others_may_only_read(path):
    """A job that installs packages runs whatever they bring: it has no right to write, and leaves no credentials."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (it comes with jupyter-book)")
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        steps = job["steps"]
        rights = job.get("permissions", workflow["permissions"])
        # GitHub's own program, in a job without the repository's files, runs nothing of others.
        if any("checkout" in step["uses"] if "uses" in step else step["run"][:3] != "gh " for step in steps):
            assert rights == {"contents": "read"}
        for step in steps:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", ["jupyter-book", "sphinx-book-theme", "numpy", "nbval", "pytest", "ruff"])
def test_what_broke_with_a_new_version_has_an_upper_bound(name):
    """nbval: conftest.py replaces a method of its; ruff: each minor version formats a little differently."""
    text = (ROOT / "requirements.txt").read_text() + (ROOT / "pyproject.toml").read_text()
    assert re.search(rf'(^|"){name}[^\n",]*(,[^\n",]*)?<\d', text, re.MULTILINE), name


# Of Google's BERT, and in recipes.
OTHER_FILES = {
    "modeling.py",
    "create_pretraining_data.py",
    "run_squad.py",
    "optimization.py",
    "name.py",
    "bank_NAME.py",
    "my_bert.py",  # of the learner
}


def names_of_files(path: Path) -> set[str]:
    """The files of Python code that a text names, or the docstrings and comments of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py" and ".py" in text:
        nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        said = [
            ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, nodes)
        ]
        said += re.findall(r"(?:^|\s)# .*", text)
        text = "\n".join(said)
    return set(re.findall(r"[\w./-]*\w\.py\b", text))


def test_the_files_that_texts_name_are_there():
    folders = ("minigrad", "book", "tests", "exercises", "solutions")
    code = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    code = [
        path for path in code if "build" not in path.relative_to(ROOT).parts
    ]  # `pip install ./book` leaves it
    there = [f"/{path.relative_to(ROOT).as_posix()}" for path in [*code, ROOT / "conftest.py"]]
    texts = [
        ROOT / name
        for name in (
            "README.md",
            "CONTRIBUTING.md",
            "book/instructors.md",
            "book/records/benchmarks/README.md",
        )
    ]
    stale = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*code, *texts]
        for name in names_of_files(path)
        if Path(name).name not in OTHER_FILES and not any(one.endswith(f"/{name}") for one in there)
    }
    assert stale == set()


def test_a_file_can_be_read_in_one_go():
    """Two are longer: the grammar, and the list of all that a backend has to give."""
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in [*FILES, *COURSE, *MAKERS]}
    most = {path: 560 if path.name in ("grammar.py", "numpy.py") else 520 for path in lines}
    assert {named(path): count for path, count in lines.items() if count > most[path]} == {}


@pytest.mark.parametrize("name", ["runs/x", "my-exercises/x"])
def test_what_the_commands_write_is_not_the_repositorys(name):
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs the git repository")
    assert subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT).returncode == 0


def test_nothing_unexpected_at_the_top():
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs the git repository")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    top = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert sorted(top - TOP_LEVEL) == []


def test_every_package_that_is_asked_for_is_pinned_with_its_hash():
    pinned = re.split(r"\n(?=\S)", (ROOT / "constraints.txt").read_text(encoding="utf-8").strip())
    assert [line for line in pinned if not re.match(r"[\w.-]+==\S+.*--hash=sha256:", line, re.DOTALL)] == []
    names = {re.split(r"==", line)[0].lower() for line in pinned}
    asked = re.findall(
        r"^([\w.-]+)[<>=]", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(asked) > 12
    assert {name.lower() for name in asked} - names == set()
