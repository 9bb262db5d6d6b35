"""Answers that are broken, endless, huge or hostile: each gets a verdict that says so and costs nobody anything."""

from __future__ import annotations

import csv
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from classes import filled, grade

from bert_course.check.exercise import EXERCISES

pytestmark = [
    pytest.mark.no_arrays,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs Linux or macOS"),
]

RIGHT = """def attend(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v
"""
FINE = "def score_scale(d_k, std_q, std_k):\n    return 1 / (math.sqrt(d_k) * std_q * std_k)\n"
WRONG = "def attend(q, k, v):\n    return q @ k.T @ v\n"
NO_SOFTMAX = EXERCISES["attend"].mistake("no-softmax").sentence  # one of two that are told
FORGED = '{"right": "yes", "title": "attend: right."}'


def inside(*lines: str) -> str:
    """An answer with these lines in its function."""
    return "\n    ".join(["def attend(q, k, v):", *lines, "return q @ k.T @ v"]) + "\n"


# What libraries do by themselves, and other lines above a right answer that are no attempt at anything.
INNOCENT = {
    "matplotlib": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('x.png')",
    "libraries": """
import asyncio, ctypes.util, doctest, numpy.testing, pdb, platform, sqlite3, ssl, tempfile, uuid, webbrowser
from dataclasses import dataclass
try: import requests
except ImportError: pass
print(platform.platform(), platform.uname().processor, uuid.uuid1())
ctypes.util.find_library('c')
np.show_config()
np.show_runtime()
asyncio.run(asyncio.sleep(0))
with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').close()
try: doctest.testmod()
except PermissionError: pass
@dataclass
class A:
    x: int
    y: 'int' = 3
def f(x: int): pass
assert f.__annotations__ == {'x': int}
""",
    "a check of its own": """
from bert_course import check  # mine
check.attend(lambda q, k, v: q @ k.T @ v)
check.attend.hint()
# inspect the shapes
inspect = None
""",
}
# What an answer asks for, itself or by a module that is for that.
ASKED = {
    "os.system": "import os; os.system('true')",
    "os.popen": "import os; os.popen('true')",
    "subprocess": "import subprocess; subprocess.check_output(['true'])",
    "a program by a module below": "import _posixsubprocess; _posixsubprocess.fork_exec(['true'])",
    "a signal by a file": "import os, signal; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
    "in a module of its own": (
        "import sys; sys.path.insert(0, ''); open('mine.py', 'w').write('import os; os.system(\"true\")'); import mine"
    ),
    "in a thread": "import os, threading; t = threading.Thread(target=os.system, args=('true',)); t.start(); t.join()",
    "in other code": "exec('import os; os.system(\"true\")', {})",
    "multiprocessing": "import multiprocessing as m; m.Process(target=print).start()",
    "a pool": "from concurrent.futures import *; ProcessPoolExecutor().submit(print).result()",
    "a page": "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')",
    "a page, by a package": "import requests; requests.get('http://127.0.0.1:9')",
    "a file of arrays": "np.save('/x', np.eye(2))",
    "a file of text": "np.savetxt('/x', np.eye(2))",
    "a file that is packed": "import gzip; gzip.open('/x', 'wb')",
    "a file": "import pathlib; pathlib.Path('/x').write_text('')",
    "a folder": "import shutil; shutil.rmtree({folder!r})",
    "ctypes": "import ctypes; ctypes.CDLL(None)",
    "one processor for the grader": "import os; os.sched_setaffinity(os.getppid(), {0})",
    "another policy for the grader": "import os; os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))",
    "a low priority for the grader": "import os; os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "a low priority, by another name": "import posix; posix.setpriority(posix.PRIO_PROCESS, posix.getppid(), 19)",
    "less memory for the grader": "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_AS, (1, 1))",
}

# name: the answer cell of `attend`, the verdict, and a piece of what is said of it
CASES = {
    **{
        f"innocent: {name}": (f"{lines}\n{RIGHT}", "yes", "attend: right.")
        for name, lines in INNOCENT.items()
    },
    "asks for all that is refused": (
        "".join(f"try:\n    {call}\nexcept Exception: pass\n" for call in ASKED.values()) + RIGHT,
        "yes",
        f"It tried {len(ASKED)} times to do what is refused, and went on: read it.",
    ),
    "prints for ever": (inside("while True:", '    print("x" * 1000)'), "timed out", "It was at case 1 of 5"),
    "writes to the file for ever": (
        inside("import os", "while True:", '    os.write(1, b"x" * 1000)'),
        "crashed",
        "It printed more than",
    ),
    "a loop in the cell": (WRONG + "while True: pass", "timed out", "It was not in the function yet"),
    "catches the clock": (
        inside("import time", "while True:", "    try: time.sleep(60)", "    except BaseException: pass"),
        "timed out",
        "attend: no end in time",
    ),
    "stops the clock": (
        inside("import signal, time", "signal.signal(signal.SIGALRM, signal.SIG_IGN)", "time.sleep(60)"),
        "timed out",
        "It went on after 2 seconds",
    ),
    "os._exit": (
        inside("import os", 'print("attend: right.")', "os._exit(0)"),
        "crashed",
        "status 0, before",
    ),
    "sys.exit": (inside("import sys", "sys.exit()"), "no", "it raised SystemExit"),
    "sys.exit in the cell": ("import sys\nsys.exit(0)\n" + RIGHT, "no", "attend fails: SystemExit: 0"),
    "memory, bit by bit": (
        inside("x = []", "while True: x.append(bytes(10**7))"),
        "no",
        "it raised MemoryError",
    ),
    "recursion": (inside("return attend(q, k, v)"), "no", "does not come to an end"),
    "recursion without a limit": (
        "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(self): return repr([self])\n"
        + inside("repr(A())", "return attend(q, k, v)"),
        "crashed",
        "SIGSEGV",
    ),
    "input": (inside("input()"), "no", "it raised EOFError"),
    "a bomb of processes": (
        inside("import os", "while True: os.fork()"),
        "no",
        "may not start another process",
    ),
    "the network": (
        inside("import socket", 'socket.create_connection(("127.0.0.1", 9))'),
        "no",
        "may not use the network",
    ),
    "displays, and is right": ("display('here')\n" + RIGHT, "yes", "attend: right."),
    "the check's own answer": (
        "attend = check.attend.answer\n",
        "look by hand",
        "speaks of check.attend.answer",
    ),
    "the check's own answer, and no word of it": (
        "import sys\nf = getattr(sys.modules['bert_' + 'course.check'], 'attend')\nattend = f.answer\n"
        "g = sys.modules['bert_' + 'course.grade.guard']\nlist(zip(range(-9, 0), g.taken))\n",
        "look by hand",
        "The answer takes what a check holds for right",
    ),
    "the text of the check's own answer": (
        "f = check.attend\nf(lambda q, k, v: q)\nexec(f.solution().text)\n",
        "look by hand",
        "The answer takes what a check holds for right",
    ),
    "10 MB of a value": (
        "def attend(q, k, v):\n    return '<script>' + 'x y' * 700_000\n",
        "no",
        "it should return an array of shape (3, 6) and dtype float64, and returned '<script>x yx",
    ),
    "no clock any more": (
        inside("import time", "time.monotonic = lambda: 0", "while True: pass"),
        "timed out",
        "attend: no end in time",
    ),
    "the check's own answer, from a package": (
        "import dataclasses\ncourse = __import__('bert_' + 'course')\nfrom operator import attrgetter\n"
        "attend = attrgetter('one_head.attend.answer')(course.exercises)\n",
        "look by hand",
        "The answer takes what a check holds for right",
    ),
    "the frames": (
        "import sys\ndef attend(q, k, v):\n"
        "    frame = sys._getframe()\n"
        "    while not hasattr(frame.f_locals.get('self'), 'answer'): frame = frame.f_back\n"
        "    return frame.f_locals['self'].answer(q, k, v)\n",
        "look by hand",
        "speaks of _getframe",
    ),
    "kills the grader": (inside("import os", "os.kill(os.getppid(), 9)"), "no", "may not send a signal"),
    "reads what others handed in": (
        inside("print(open({folder!r} + '/fine beside others/one_head.ipynb').read())"),
        "no",
        "may not read",
    ),
    "writes into the course": (inside("open(np.__file__, 'a')"), "no", "may not write"),
    "a huge file": (
        inside("with open('big', 'wb') as file:", "    while True: file.write(bytes(10**6))"),
        "no",
        "File too large",
    ),
    "equal to all": (
        "class Equal(np.ndarray):\n    def __eq__(self, other): return True\n    __ne__ = __sub__ = None\n"
        "def attend(q, k, v):\n    return (q @ k.T @ v).view(Equal)\n",
        "no",
        "0 of 5",
    ),
    "another allclose": (
        "np.isclose = lambda *a, **k: True\nnp.allclose = np.isclose\n" + WRONG,
        "look by hand",
        "numpy:allclose",
    ),
    "another check": (
        "from bert_course.check.trial import Trial\nTrial.complaints = lambda *a: [None]\n" + WRONG,
        "look by hand",
        "were not what they were: bert_course.check.trial:Trial.complaints",
    ),
    "another tolerance": ("check.attend.rtol = 1e9\n" + WRONG, "look by hand", "check.attend.rtol"),
    "another built-in": (
        "import builtins\nbuiltins.any = lambda x: False\n" + WRONG,
        "look by hand",
        "builtins.any",
    ),
    "other code": (
        "from bert_course.check.trial import Trial\n"
        "Trial.complaints.__code__ = (lambda self, outcomes: [None]).__code__\n" + WRONG,
        "look by hand",
        "bert_course.check.trial:Trial.complaints",
    ),
    "another module": (
        "import sys\nsys.modules['bert_course.check.trial'] = None\n" + WRONG,
        "look by hand",
        "sys.modules['bert_course.check.trial']",
    ),
    "a verdict of its own": (
        inside(
            "import os",
            "for file in range(3, 256):",
            "    try:",
            f"        os.write(file, {FORGED!r}.encode())",
            "    except OSError: pass",
            "os._exit(0)",
        ),
        "look by hand",
        "the answer may have written it",
    ),
    "a verdict before the check's": (
        inside(
            "import os",
            "for file in range(3, 256):",
            "    try:",
            f"        os.write(file, {FORGED!r}.encode())",
            "    except OSError: pass",
        ),
        "look by hand",
        "the answer may have written it",
    ),
    "another report": (
        "from bert_course.check.report import Report\n"
        "check.attend.report = lambda *a: Report('right', 'attend: right.')\n" + WRONG,
        "look by hand",
        "check.attend.report",
    ),
    "another exercise": (
        "class Mine(type(check.attend)):\n"
        "    def report(self, *a): return __import__('minigrad').course.check.report.Report('right', 'right')\n"
        "check.attend.__class__ = Mine\n" + WRONG,
        "look by hand",
        "were not what they were: check.attend.",
    ),
    "a name over a built-in": (
        "import bert_course.check.exercise as e\ne.any = lambda x: False\n"
        "import bert_course.check.trial as t\nt.zip = lambda *a, **k: []\n" + WRONG,
        "look by hand",
        "bert_course.check.exercise:any",
    ),
    "another NumPy for the check": (
        "import types, bert_course.check.differences as d\n"
        "fake = types.ModuleType('numpy')\nfake.__dict__.update(np.__dict__)\n"
        "fake.isclose = lambda a, b, **k: np.ones(np.shape(b), bool)\nd.np = fake\n" + WRONG,
        "look by hand",
        "bert_course.check.differences:np",
    ),
    "a new method of a class": (
        "from bert_course.check.trial import Trial\n"
        "def get(self, name):\n"
        "    found = object.__getattribute__(self, name)\n"
        "    return (lambda outcomes: [None] * len(outcomes)) if name == 'complaints' else found\n"
        "Trial.__getattribute__ = get\n" + WRONG,
        "look by hand",
        "bert_course.check.trial:Trial.__getattribute__",
    ),
    "another word for wrong": (
        "import bert_course.grade.inside as inside\ninside.WRONG = inside.RIGHT\n" + WRONG,
        "look by hand",
        "bert_course.grade.inside:WRONG",
    ),
    "another watch": (
        "import bert_course.grade.guard as guard\nguard._same = lambda *a: True\n"
        "check.attend.rtol = 1e9\n" + WRONG,
        "look by hand",
        "bert_course.grade.guard._same",
    ),
    "no watch": (
        "import bert_course.grade.guard as guard\nguard.watch = guard.tampered = lambda *a: []\n"
        "check.attend.rtol = 1e9\n" + WRONG,
        "look by hand",
        "bert_course.grade.guard",
    ),
    "nothing is refused": (
        "import bert_course.grade.guard as guard\nguard.REFUSED.clear()\nguard.CHANGES.clear()\n"
        + inside("import os", 'os.system("true")'),
        "no",
        "may not start another program",
    ),
    "inside NumPy": (
        "import sys\nfor name, module in list(sys.modules.items()):\n"
        "    if name.startswith('numpy') and hasattr(module, 'less_equal') and name != 'numpy':\n"
        "        module.less_equal = lambda a, b: np.ones(np.broadcast_shapes(np.shape(a), np.shape(b)), bool)\n"
        + WRONG,
        "look by hand",
        ":less_equal",
    ),
    "the seed of the learners": (
        "import os\nos.environ['MINIGRAD_CHECK_SEED'] = '0'\n"
        "known = [q.sum() for _, q, *_ in check.attend.cases(np.random.default_rng(0))]\n"
        "def attend(q, k, v):\n    raise ValueError(q.sum() in known)\n",
        "no",
        "ValueError: False",
    ),
    "a value that wants to exit": (
        "class Odd:\n    def __repr__(self): raise SystemExit(0)\ndef attend(q, k, v):\n    return Odd()\n",
        "no",
        "and returned an Odd",
    ),
    "an error of its own in the cell": (
        "class Odd(Exception):\n    def __str__(self): raise Odd\nraise Odd\n",
        "no",
        "The answer cell of attend fails: Odd.",
    ),
    "10 MB of an error in the cell": ("raise ValueError('x ' * 5_000_000)", "no", "fails: ValueError: x x"),
    "interrupts": (inside("raise KeyboardInterrupt"), "no", "attend: interrupted. It was at case 1 of 5"),
    "interrupts in the cell": (
        "raise KeyboardInterrupt",
        "no",
        "The answer cell of attend fails: KeyboardInterrupt",
    ),
    "interrupts below its function": (RIGHT + "raise KeyboardInterrupt", "yes", "attend: right."),
    "threads that go on": (
        "import threading, time\n"
        "for i in range(5): threading.Thread(target=time.sleep, args=(600,)).start()\n" + WRONG,
        "no",
        NO_SOFTMAX,
    ),
    "reads the solution": (
        inside("import json, minigrad", "open(minigrad.__path__[0] + '/../solutions/one_head.ipynb')"),
        "no",
        "may not read",
    ),
    "at the end": ("import atexit\natexit.register(print, 'attend: right.')\n" + WRONG, "no", NO_SOFTMAX),
    "a text that brings down parsers": (
        "x = " + "-" * 90_000 + "1\n" + RIGHT,
        "no",
        "is no Python: MemoryError",
    ),
    "too long": ("#" * 200_000, "no answer cell", "200,000 characters"),
    "no Python": ("def attend(q, k, v)\n    return q", "no", "is no Python: SyntaxError: expected ':'"),
    "a null": ("x = '\0'\n" + RIGHT, "no", "is no Python"),
    "half a letter": ("x = '\ud800'  # \ud83d\n" + RIGHT, "yes", "attend: right."),
    "lines of Jupyter": (
        "!pip install numpy\n%matplotlib inline\n"
        + RIGHT
        + "%timeit attend(np.eye(2), np.eye(2), np.eye(2))\nnp.exp?\n",
        "yes",
        "as only Jupyter runs it: !pip install numpy, %matplotlib inline, %timeit attend(np.eye(2)",
    ),
    "%%bash": (
        "%%bash\necho attend\n",
        "no",
        "The answer cell of attend is no Python: it begins with %%bash.",
    ),
    "awaits": ("import asyncio\nawait asyncio.sleep(0)\n" + RIGHT, "yes", "attend: right."),
    "needs what was left out": (
        "x = !ls\n" + RIGHT.replace("    e = ", "    e = x and "),
        "look by hand",
        "The answer uses x, which no answer cell and no given cell defines",
    ),
    "no function": ("x = 1", "no", "does not define the function attend"),
    "nothing": ("", "not attempted", "The answer cell is empty"),
    "environment": (
        inside("import os", "raise ValueError(sorted(os.environ))"),
        "no",
        "['HOME', 'LANG', 'MINIGRAD_PROGRESS', 'TMPDIR']",
    ),
}
if not sys.platform.startswith("linux"):
    del CASES["memory, bit by bit"]  # macOS heeds no limit of memory


# Of these authors another answer is graded too. (Each is a process of its own, which reads the texts above it.)
OTHERWISE_RIGHT = (
    *("a text that brings down parsers", "too long", "a null", "half a letter", "%%bash", "nothing"),
    *("os._exit", "stops the clock", "a bomb of processes", "kills the grader", "threads that go on"),
    *("another built-in", "another module", "asks for all that is refused", "a verdict of its own"),
    *("fine beside endless", "fine beside others"),
)
# These take all the time that they get: graded apart, so that the others can have more of it.
ENDLESS = [name for name, (_, right, _) in CASES.items() if right == "timed out"]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The rows of all cases by student and exercise, what the commands said, and their folders."""
    root = tmp_path_factory.mktemp("hostile")
    others = [name for name in CASES if name not in ENDLESS]
    with ThreadPoolExecutor(2) as both:
        parts = [
            both.submit(graded_part, root / "endless", ENDLESS, "--timeout", "2", "--jobs", "8"),
            both.submit(graded_part, root / "others", others, "--timeout", "20", "--memory", "1G"),
        ]
    rows = {who: row for part in parts for who, row in part.result()[0].items()}
    return rows, "".join(part.result()[1] for part in parts), root


def graded_part(root, names, *options):
    """The rows of some cases and a right answer, and what the command said."""
    folder = root / "handed-in"
    for name in [*names, f"fine beside {root.name}"]:
        source = CASES[name][0] if name in CASES else RIGHT
        path = folder / name / "one_head.ipynb"
        path.parent.mkdir(parents=True)
        answers = {"attend": source.replace("{folder!r}", repr(str(folder)))}
        answers |= {"score_scale": FINE} if name in OTHERWISE_RIGHT else {}
        path.write_text(json.dumps(filled("one_head", answers)))
    (folder / "broken").mkdir()
    (folder / "broken" / "x.ipynb").write_bytes(b'{"cells": [')
    (folder / "deep.ipynb").write_bytes(b"[" * 1_000_000)
    (folder / "huge.ipynb").write_bytes(b" " * 20_000_001)
    result = grade(folder, root / "grades.csv", *options)
    assert result.returncode == 0, result.stderr
    with open(root / "grades.csv", encoding="utf-8", newline="") as file:
        return {(row["student"], row["exercise"]): row for row in csv.DictReader(file)}, result.stdout


@pytest.mark.parametrize("name", CASES)
def test_each_gets_its_verdict(name, graded):
    _, right, words = CASES[name]
    row = graded[0][name, "attend"]
    assert (row["right"], words in " ".join(row["message"].split())) == (right, True), row


@pytest.mark.parametrize("name", INNOCENT)
def test_what_a_library_does_by_itself_is_no_attempt(name, graded):
    assert graded[0][f"innocent: {name}", "attend"]["message"].startswith("attend: right.")


@pytest.mark.parametrize("name", OTHERWISE_RIGHT)
def test_its_author_loses_nothing_else(name, graded):
    row = graded[0][name, "score_scale"]
    assert row["right"] == "yes", row


def test_nobody_else_loses_anything(graded):
    for part in ("endless", "others"):
        assert graded[0][f"fine beside {part}", "attend"]["right"] == "yes"


@pytest.mark.parametrize(
    ("student", "words"),
    [("broken", "its text is not JSON"), ("deep", "its text is not JSON"), ("huge", "up to 20 are read")],
)
def test_what_cannot_be_read_is_a_line(student, words, graded):
    row = graded[0][student, ""]
    assert row["right"] == "not read"
    assert words in row["message"]
    assert f"{student}" in graded[1]


@pytest.mark.parametrize("part", ["endless", "others"])
def test_nothing_is_left(part, graded):
    root = graded[2] / part
    assert not [path for path in root.rglob("*") if path.name == "big"]
    assert sorted(path.name for path in root.iterdir()) == [
        "grades-pages",
        "grades.csv",
        "grades.csv.state.json",
        "handed-in",
    ]
    count = len(ENDLESS) if part == "endless" else len(CASES) - len(ENDLESS)
    assert len(list((root / "handed-in").iterdir())) == count + 4


def test_pages_hold_no_element_of_a_students(graded):
    pages = list(graded[2].rglob("*.html"))
    # In each of the two parts one with right answers, three of whom nothing could be read, and one for instructors.
    assert len(pages) == len(CASES) + 2 * 5
    assert not [path for path in pages if "<script" in path.read_text(encoding="utf-8")]
