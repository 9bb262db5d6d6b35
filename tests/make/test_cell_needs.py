"""Which cells a cell needs, by small notebooks whose answer is plain."""

from __future__ import annotations

import pytest

from book.make.cell_needs import Recorder, closed, direct, recorded, split
from book.site.python.packages.page_kernel import Kernel
from minigrad import random
from minigrad.tensor import Tensor

pytestmark = pytest.mark.numpy_only("as pages are")

COUNTER = "class Counter:\n    def __init__(self): self.n = self._n = 0\n    def add(self): self.n += 1\n"
CLOSED = "def make():\n    kept = []\n    return lambda: kept.append(1) or len(kept)\n"
SLOTS = "from minigrad.graph import Gradient\ng = Gradient([len])"
TENSORS = "from minigrad import Tensor, no_grad, ops\nimport numpy as np\nx = Tensor([1.0, 2.0], requires_grad=True)"
MODEL = (
    "import numpy as np\nfrom minigrad import Tensor, nn, no_grad\nfrom minigrad.optim import SGD\n"
    "model = nn.Linear(2, 1)\nx = Tensor([[1.0, 1.0]])\nsgd = SGD(model.parameters(), lr=0.1)\n"
    "def walk(m): (m(x) * m(x)).sum().backward(); sgd.step(); sgd.zero_grad()"
)


def run(kernel, cells):
    """Run cells one after the other, each from the draws that it is given; the outputs of the last."""
    for cell, source, draws in cells:
        kernel.outputs.clear()
        if isinstance(kernel, Recorder):
            with kernel.noting(cell, source):
                kernel.run(source, draws)
        else:
            kernel.run(source, draws)
    return list(kernel.outputs)


def kernel_of(kind):
    outputs = []
    kernel = kind(outputs.append)
    kernel.outputs = outputs
    return kernel


def needed(*sources):
    """The cells that the last of these needs, a letter each: "ac"; after those alone it puts out what it does here."""
    random.manual_seed(0)
    pages, recorder = [], kernel_of(Recorder)
    for name, source in zip("abcdefgh", sources, strict=False):
        now = random.get_state()
        pages.append((name, source, [now["seed"], now["draws"]]))
        whole = run(recorder, pages[-1:])
    *above, last = pages
    found = recorder.needs[last[0]]
    alone = kernel_of(Kernel)
    again = run(alone, [one for one in above if one[0] in found] + [last])
    assert [{**one, "traceback": ""} for one in again] == [{**one, "traceback": ""} for one in whole]
    return "".join(sorted(found))


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        # who bound what is read
        (["x = 1", "y = 2", "print(y)"], "b"),
        (["x = 1", "y = x", "y"], "ab"),
        (["x = 1", "x = 2", "x"], "b"),
        (["x = 1", "x = 1", "x"], "b"),  # edit the second, and the third shows it
        (["x = 1", "x = x + 1", "x"], "ab"),
        (["x = 1", "x = 2\nx"], ""),
        (["x = 1", "def f(x): return x\nf(2)"], ""),
        (["x = 1", "[x for x in range(3)]"], ""),
        (["x = 1", "[y for y in range(x)]"], "a"),
        (["x = 1", "if False:\n    x = 2", "x"], "a"),
        # functions and classes
        (["x = 1", "def f(): return x", "f()"], "ab"),
        (["x = 1", "def f(): return x", "x = 2", "f()"], "bc"),
        (["x = 1", "def f(): return x", "f.__name__"], "b"),
        (["x = 1", "def f(a=x): return a", "f()"], "ab"),
        (["x = 1", "class A:\n    y = x", "A.y"], "ab"),
        (["x = 1", "class A:\n    x = 2\n    y = x", "A.y"], "b"),
        (["x = 1", "class A:\n    class B:\n        def f(self, a=x): return a", "A.B().f()"], "ab"),
        (["x = 1", "def f():\n    class A:\n        y = x\n    return A.y", "f()"], "ab"),
        (["y = 1", "def f():\n    global y\n    y += 1\n    return y", "f()", "y"], "abc"),
        (["def f():\n    global y\n    y = 1", "f()", "y"], "ab"),
        (["x = 1", "y = dict(globals())['x'] if 'x' in globals() else 0", "globals()['x']"], "a"),
        (["class A: pass", "a = A()", "A.__name__"], "a"),
        (["class A: pass", "a = A()", "A.f = lambda self: 1", "a.f()"], "abc"),
        (["class A: pass\na = A()", "A.n = 1", "a.n"], "ab"),
        (["from typing import NamedTuple\nclass P(NamedTuple): n: int\np = P(1)", "P.m = 2", "p.m"], "ab"),
        (["def f(): pass", "f.n = 1", "f.n"], "ab"),
        (["def f(a=[]): a.append(1); return a", "f()", "f()"], "ab"),
        (["def f(*, a=[]): a.append(1); return a", "f()", "f()"], "ab"),
        ([CLOSED, "f = make()", "f()", "f()"], "abc"),
        ([f"{CLOSED}f = make()\ng = make()", "f()", "g()"], "a"),
        # changes in place, under whatever name
        (["x = [1]", "x.append(2)", "x"], "ab"),
        (["x = [1]", "print(x)", "x"], "a"),
        (["x = [1]", "y = x", "y.append(2)", "x"], "abc"),
        (["x = [1]", "y = x", "x = [2]", "y.append(2)", "x"], "c"),
        (["x = [[1], object]", "x[0].append(2)", "x[0]"], "ab"),
        (["x = [len]", "x[0] = print", "x"], "ab"),
        (["x = {'a': [object]}", "x['a'].append(2)", "x['a'][1:]"], "ab"),
        (["x = {(1, len): 1}", "x[2, len] = 3", "len(x)"], "ab"),
        (["x = ({1}, len)", "x[0].add(2)", "x[0]"], "ab"),
        (["x = {len}", "x.add(print)", "len(x)"], "ab"),
        (["import numpy as np\nx = np.zeros(3)", "y = x[:1]", "y[0] = 1", "x"], "abc"),
        (["import numpy as np\nx = np.zeros(3)", "y = x[:1]", "x[0] = 1", "y"], "abc"),
        (["import numpy as np\nx = np.zeros((2, 3))", "x.shape = 3, 2", "x.shape"], "ab"),
        (["import numpy as np\nx = np.ones(1, 'f4')", "x.dtype = 'i4'", "x"], "ab"),
        (["import numpy as np\nx = np.array([[1], len], object)", "x[0].append(2)", "x[0]"], "ab"),
        (["x = [1]", "def update_table(t): t.append(2); return 3", "y = update_table(x)", "x"], "abc"),
        ([COUNTER, "c = Counter()", "c.add()", "c.n"], "abc"),
        ([COUNTER, "c = Counter()", "c._n += 1", "c.n"], "abc"),
        (["from types import SimpleNamespace\nn = SimpleNamespace()", "n._kept = [len]", "type(n)"], "a"),
        (["from bert_course.chapters.errata_runs import Draw\nd = Draw(0)", "y = d.Q.shape", "d.seed"], "a"),
        (["from functools import cache\nx = 1", "@cache\ndef f(): return x", "f()", "f()"], "ab"),
        ([SLOTS, "g.array.append(1)", "len(g.array)"], "ab"),
        (["from collections import deque\nx = deque([len])", "x.append(print)", "len(x)"], "ab"),
        (["from collections import Counter\nx = Counter('a')", "x.update('b')", "len(x)"], "ab"),
        (["from collections import Counter as C\nx, y = C([len]), C([len])", "x[print] += 1", "y.total()"], "a"),
        (["x = []", "y = {'f': x.append, 1: len}", "y['f'](len)", "len(x)"], "abc"),
        # generators and iterators
        (["import numpy as np\nr = np.random.default_rng(0)", "r.normal()", "r.normal()"], "ab"),
        (["import numpy as np\nr = np.random.default_rng(0)", "d = [r, len]", "d[0].normal()", "r.normal()"], "abc"),
        (["import random\nr = random.Random(0)", "r.random()", "r.random()"], "ab"),
        (["i = zip([1, 2], [len, print])", "next(i)[0]", "next(i)[0]"], "ab"),
        (["i = (n for n in [1, 2])", "next(i)", "next(i)"], "ab"),
        (["i = (n for n in [1])", "list(i)", "list(i)"], "ab"),
        (["def f():\n    for n in range(9): yield n", "i = f()", "next(i)", "next(i)", "next(i)"], "abcd"),
        (["from minigrad import random", "random.generator().normal()", "random.generator().normal()"], "a"),
        # what a container keeps
        (["x = [len]", "y = []\ny.append(x)", "len(x)"], "a"),
        (["x = [len]", "y = [x]", "y[0].append(1)", "len(x)"], "abc"),
        (["x = [len]", "y = [x]", "x.append(1)", "len(y[0])"], "abc"),
        (["x = [len]\nx.append(x)", "y = [x]", "x.append(1)", "len(y[0])"], "abc"),
        # del, errors
        (["x = 1", "del x"], "a"),
        (["x = y = 1", "del x", "print(y)\nx"], "ab"),
        (["x = [1]", "x.append(2); 1 / 0", "x"], "ab"),
        (["x = 1", "y = 2; 1 / 0; x", "y"], "b"),
        (["x = 1", "x +", "x"], "a"),
        # what a cell sets outside of its names
        (["import numpy as np\nx = np.array([1 / 3])", "np.set_printoptions(precision=2)", "x"], "ab"),
        (["import numpy as np\nx = np.zeros(1)", "o = np.seterr(all='ignore')", "np.geterr()['divide'], x"], "ab"),
        # Tensors, and their gradients apart
        ([TENSORS, "y = (x * x).sum()", "y.backward()", "x.grad"], "abc"),
        ([TENSORS, "y = (x * x).sum()", "y.backward()", "x.numpy()"], "a"),
        ([TENSORS, "y = (x * x).sum()", "y.backward()", "y.backward()"], "abc"),
        ([TENSORS, "(x * x).sum().backward()", "x.grad = None\n(x * x).sum().backward()\nx.grad"], "a"),
        ([TENSORS, "(x * x).sum().backward()", "(x * x).sum().backward()\nx.grad"], "ab"),
        ([TENSORS, "(x * x).sum().backward(); z = 1", "x.grad = None", "z, x.grad"], "abc"),
        ([TENSORS, "(x * x).sum().backward()", "w = x", "w.grad"], "abc"),
        ([TENSORS, "(x * x).sum().backward()", "w = []", "w.append(x)", "w[0].grad"], "abcd"),
        ([TENSORS, "(x * x).sum().backward()", "x = Tensor([1.0])", "x.grad"], "ac"),
        ([TENSORS, "w = x", "(x * x).sum().backward()", "w.grad"], "abc"),
        ([TENSORS, "x.data[0] = 5", "x.numpy()"], "ab"),
        ([TENSORS, "x.requires_grad = False", "x.requires_grad"], "ab"),
        ([TENSORS, "h = x.register_post_accumulate_grad_hook(len)", "len(x.hooks)"], "ab"),
        ([MODEL, "walk(model)", "model(x).numpy().round(3)"], "ab"),
        ([MODEL, "before = model(x).numpy()", "walk(model)", "before.round(3)"], "ab"),
        ([MODEL, "with no_grad():\n    model(x)", "model(x).numpy().round(3)"], "a"),
    ],
)  # fmt: skip
def test_what_the_last_cell_needs(sources, expected):
    assert needed(*sources) == expected


def test_tensors_are_as_before_when_a_page_has_run():
    slot = Tensor.__dict__["grad"]
    needed(TENSORS, "x.grad", "1 / 0")
    assert Tensor.__dict__["grad"] is slot


def test_a_recorder_is_a_kernel_too():
    recorder = kernel_of(Recorder)
    assert recorder.run("x = 1")
    assert recorder.run("x")
    assert recorder.needs == {}


def test_a_recorder_that_forgets_knows_of_no_cell():
    recorder = kernel_of(Recorder)
    run(recorder, [("a", "x = 1", None)])
    recorder.forget()
    run(recorder, [("b", "x", None)])
    assert recorder.needs == {"b": set()}


NEEDS = {"z": set(), "a": {"z"}, "m": {"a", "z"}, "b": set(), "c": {"z", "b"}}


def test_what_is_stored_leads_back_to_all_needs():
    stored = direct(NEEDS)
    assert stored == {"z": [], "a": ["z"], "m": ["a"], "b": [], "c": ["z", "b"]}
    assert closed(stored) == {"z": [], "a": ["z"], "m": ["z", "a"], "b": [], "c": ["z", "b"]}


@pytest.mark.parametrize("other", ["c", "d", "nowhere"])
def test_what_is_needed_stands_above(other):
    with pytest.raises(ValueError, match=f"cell c needs {other}, which is no cell above it"):
        closed({"a": [], "c": [other], "d": []})


def test_a_page_is_recorded_in_its_folder_and_leaves_nothing_here(tmp_path):
    (tmp_path / "here.txt").write_text("import os\nassert os.environ['MINIGRAD_PROGRESS'] == 'off'")
    before = random.get_state()
    page = {
        "a": "x = open('here.txt').read()\nexec(x)",
        "b": "1 / 0",
        "c": "from minigrad import random\nrandom.generator()\nx",
    }
    assert recorded(page, tmp_path, ["b"]) == {"a": set(), "b": set(), "c": {"a"}}
    assert random.get_state() == before
    with pytest.raises(RuntimeError, match=r"cell b fails: (?s:.)*ZeroDivisionError"):
        recorded(page, tmp_path)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a\nx = 1\nf(x)", "import a\nx = 1"),
        ("x = train()\ny = 1", "\ny = 1"),
        ("x = np.ones(3)\ny = math.pi\nz = w(3)", "x = np.ones(3)\ny = math.pi"),
        ("z = w(np.ones(3))\nx = np.ones(3)", "\nx = np.ones(3)"),
        ("@a\ndef f():\n    return 1\nf()", "@a\ndef f():\n    return 1"),
        ("def f():\n    return x\nx = g()", "def f():\n    return x"),
        ("x = g()\ndef f():\n    return x", "\ndef f():\n    return x"),
        ("x = g()\ndef f(a=x):\n    return a", ""),
        ("x = g()\n@x\ndef f():\n    pass", ""),
        ("x = g()\ndef f() -> x:\n    pass", ""),
        ("x = g()\ndef f(a=x):\n    return y\nf()\ny = 1", ""),
        ("class A:\n    pass\nf()", "class A:\n    pass"),
        ("x = g()\nclass A(x):\n    pass", ""),
        ("x = g()\nf = lambda: x", ""),
        ("print(x)\nx = 1", ""),  # the x of another cell
        ("f(1)\ndef f():\n    pass", ""),
        ("if f(1):\n    import a\na = 1", ""),
        ("if f(1):\n    def a(): pass\na = 1", ""),
        ("x = [1]\nx.append(2)\ny = x", "x = [1]"),
        ("x, y = 1, 2\nf()", ""),
        ("x = nprint(1)", ""),
    ],
)
def test_what_a_cell_only_names(source, names):
    found, rest = split(source)
    assert found == names
    ends = ["pass"] if found.endswith(source.split("\n")[-1]) else []  # so that the rest shows no value
    assert sorted((found + "\n" + rest).split()) == sorted(source.split() + ends)
    assert not ends or rest.endswith("pass")
