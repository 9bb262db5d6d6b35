"""Which cells a cell needs, by small notebooks whose answer is plain."""

from __future__ import annotations

import pytest

from minigrad.course.authoring.cell_needs import needs_of, split

pytestmark = pytest.mark.no_arrays


def needed(*sources: str) -> str:
    """The cells that the last of these needs, a letter each: "ac"."""
    cells = {chr(ord("a") + i): source for i, source in enumerate(sources)}
    return "".join(needs_of(cells)[list(cells)[-1]])


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        # who bound what is read
        (["x = 1", "y = 2", "print(y)"], "b"),
        (["x = 1", "y = x", "y"], "ab"),
        (["x = 1", "x = 2", "x"], "b"),
        (["x = 1", "x = x + 1", "x"], "ab"),
        (["x = 1", "x += 1", "x"], "ab"),
        (["x = 1", "x = 2\nx"], ""),
        (["x = 1", "def f(x): return x\nf(2)"], ""),
        (["x = 1", "[x for x in range(3)]"], ""),
        (["x = 1", "[y for y in range(x)]"], "a"),
        (["import numpy as np", "x = 1", "np.ones(3)"], "a"),
        (["from os import path as p", "p.sep"], "a"),
        (["x = 1", "if False:\n    x = 2", "x"], "ab"),
        (["x = 1", "for x in range(3):\n    pass", "x"], "b"),
        (["with open('f') as file:\n    pass", "file"], "a"),
        (["x, (y, z) = 1, (2, 3)", "z"], "a"),
        (["try:\n    x = 1\nexcept ValueError:\n    x = 2", "x"], "a"),
        (["(x := 3)", "x"], "a"),
        # functions
        (["x = 1", "def f(): return x", "f()"], "ab"),
        (["x = 1", "def f(): return x", "x = 2", "f()"], "bc"),
        (["x = 1", "def f(): return x", "x = 2", "g = 3", "f"], "bc"),
        (["def f(): return 1", "def g(): return f()", "g()"], "ab"),
        (["x = 1", "f = lambda: x", "x = 2", "f()"], "abc"),
        (["class A:\n    pass", "a = A()", "a"], "ab"),
        (["x = 1", "class A:\n    y = x", "A"], "ab"),
        (["x = 1", "def f(a=x): return a", "f()"], "ab"),
        # changes
        (["x = [1]", "x.append(2)", "x"], "ab"),
        (["x = [1]", "x[0] = 2", "x"], "ab"),
        (["x = {}", "del x['a']", "x"], "ab"),
        (["x = [1]", "print(x)", "x"], "a"),
        (["x = [1]", "x.copy()\nprint(1)", "x"], "ab"),
        (["x = [1]", "n = len(x)", "x"], "a"),
        (["m = M()", "m.eval()", "m(1)"], "ab"),
        (["m = M()", "losses = train(m)", "m"], "ab"),
        (["m = M()", "losses = measure(m)", "m"], "a"),
        (["m = M()", "def walk(m):\n    m.weight[0] = 1\n    return m", "y = walk(m)", "m"], "abc"),
        (["m = M()", "def look(m):\n    return m.weight[0]", "y = look(m)", "m"], "a"),
        (["x = T()", "y = (x * x).sum()", "y.backward()", "x.grad"], "abc"),
        (["w = T()", "o = Adam([w])", "o.step()", "w"], "abc"),
        (["x = [1]", "y = x[:1]", "x[0] = 2", "y"], "abc"),
        (["x = [1]", "y = sum(x)", "x[0] = 2", "y"], "ab"),
        (["r = default_rng(0)", "a = r.normal()", "b = r.normal()", "b"], "abc"),
        (["r = default_rng(0)", "a = make(r)", "b = 1", "make(r)"], "ab"),
        (["i = iter([1, 2])", "a = next(i)", "next(i)"], "ab"),
        (["import numpy as np", "np.set_printoptions(precision=3)", "np.ones(3)"], "ab"),
        (["import numpy as np", "np.ones(3)", "np.ones(4)"], "a"),
        (["import a", "a.limit = 3", "a.f()"], "ab"),
        (["m = M()", "losses = measure(m, next_sentence(m))", "m"], "a"),
        (["x = [1]", "y = sorted(x)\nz = set(x)", "x"], "a"),
        (["x = T()", "x.zero_()", "x"], "ab"),
        (["m = M()", "table(['size'], [[m.size]])", "m"], "a"),
        (["m = M()", "loss_curves(m)", "m"], "a"),
        (["m = M()", "step_flow(m)", "m"], "ab"),
        (["y = [1]", "cross_entropy(f(1), y).backward()", "y"], "a"),
        (["y = T()", "cross_entropy(y, f(1)).backward()", "y"], "ab"),
        # what a container keeps
        (["x = T()", "y = []\ny.append(x)", "x"], "a"),
        (["x = T()", "y = []", "y.append(x)", "y"], "abc"),
        (["x = T()", "y = []\ny.append(x)", "x += 1", "y"], "abc"),
        (["x = T()", "y = {}\ny['a'] = f(x)", "x"], "a"),
        (["x = T()", "y = [f(x)]", "y += [1]", "x"], "a"),
        (["x = T()", "y = [x]", "y[0] = 1", "x"], "a"),
        (["x = T()", "y = [x]", "y[0][0] = 1", "x"], "abc"),
        (["x = T()", "y = x", "y.append(1)", "x"], "abc"),
        (["x = T()", "y = x[0]", "y[0] = 1", "x"], "abc"),
        (["x = T()", "y = np.zeros_like(x)", "y[0] = 1", "x"], "a"),
        (["x = T()", "y = {'a': [f(x)]}", "y['a'].append(1)", "x"], "a"),
        (["x = T()", "y = {'a': [f(x)]}", "y['a'].append(1)", "y"], "abc"),
        (["x = T()", "y = {'a': x}", "y['a'].append(1)", "x"], "abc"),
        (["x = T()", "y = {}\ny.setdefault('a', []).append(f(x))", "x"], "a"),
        (["x = T()", "n, y = f(x), []\ny.append(n)", "x"], "a"),
        (["x = {}", "x['a'] = 1", "x"], "ab"),
        (["x = {}", "x['a'], y = 1, 2", "x"], "ab"),
        (["x = {}", "for x['a'] in range(2):\n    pass", "x"], "ab"),
        (["x = {}", "x['a'] += 1", "x"], "ab"),
        (["r = default_rng(0)", "y = []\ny.append(r.normal())", "r.normal()"], "ab"),
        # what a function changes without being given it
        (["w = T()", "def read(x):\n    w.data = x", "read(1)", "w"], "abc"),
        (["w = T()", "def read(x):\n    w.data = x", "y = read(1)", "w"], "abc"),
        (["w = T()", "def read(x):\n    w.data = x", "w"], "a"),
        (["w = T()", "def read(x):\n    w.data = x", "def twice(x):\n    read(x)", "twice(1)", "w"], "abcd"),
        (["w = T()", "def read(w):\n    w.data = 1", "read(v)", "w"], "a"),
        (["w = T()", "def read(x):\n    w = T()\n    w.data = x", "read(1)", "w"], "a"),
        (["w = T()", "def read(x):\n    w.data = x", "def read(x): return x", "read(1)", "w"], "a"),
        (["f = []", "def look(x):\n    f.append(x)", "walk(2, every=look)", "f"], "abc"),
        (["f = []", "def look(x):\n    f.append(x)\nwalk(2, look)", "f"], "ab"),
        (["X = T()", "def go(m):\n    loss(m, X).backward()", "y = go(n)", "X"], "a"),
        (["m = M()", "def go():\n    train(m, 3)", "go()", "m"], "abc"),
        (["c = M()", "def plot(axes):\n    axes.plot(c)", "figure = draw(plot)", "c"], "a"),
        # generators, and what was drawn from them
        (["x = make(default_rng(0))", "y = f(x)", "x"], "a"),
        (["x = [make(default_rng(k)) for k in (0, 1)]", "n = f(x)", "x"], "a"),
        (["x = [default_rng(k) for k in (0, 1)]", "n = f(x)", "x"], "ab"),
        (["x = (k for k in range(9))", "n = f(x)", "x"], "ab"),
        (["x = sum(k for k in range(9))", "n = f(x)", "x"], "a"),
        (["r = default_rng(0)", "d = Data(r)", "d.batch()", "d"], "abc"),
        (["r = default_rng(0)", "n = len(r)", "r"], "a"),
        # what a class reads when it is defined
        (["import optim", "class A:\n    def f(self, kind=optim.Adam): return kind", "A"], "ab"),
        (["import optim", "class A:\n    def f(self, kind=optim.Adam): return kind"], "a"),
        (["x = 1", "class A:\n    x = 2\n    y = x"], ""),
        # names inside of functions, and of comprehensions
        (["g = 1", "def f():\n    def g(): pass\n    return g", "f()"], "b"),
        (["g = 1", "def f():\n    class g: pass\n    return g", "f()"], "b"),
        (["g = 1", "def f():\n    import g\n    return g", "f()"], "b"),
        (["g = 1", "def f():\n    from a import g\n    return g", "f()"], "b"),
        (
            [
                "e = 1",
                "def f():\n    try:\n        x()\n    except ValueError as e:\n        return e",
                "f()",
            ],
            "b",
        ),
        (["y = 1", "def f():\n    y = 2\n    return y", "f()"], "b"),
        (["y = 1", "def f():\n    global y\n    y += 1\n    return y", "f()"], "ab"),
        (["a, k = 1, 2", "def f(*a, **k): return a, k", "f()"], "b"),
        (["x = 1", "f = lambda x: x", "f(1)"], "b"),
        (["x = 1", "f = lambda a=x: a", "f()"], "ab"),
        (["k = 1", "{k: k for k in range(3)}"], ""),
        (["k = 1", "{k for k in range(3)}"], ""),
        (["k = 1", "list(k for k in range(3))"], ""),
        (["k = 1", "[k for k in range(3)]", "k"], "a"),
        # blocks
        (["x = 1", "with f():\n    x = 2\n    y = x"], ""),
        (["x = 1", "try:\n    x = 2\n    y = x\nfinally:\n    pass"], ""),
        (["x = 1", "try:\n    y = 1\nexcept ValueError:\n    x = 2", "x"], "ab"),
        (["x = 1", "del x"], "a"),
        # who is handed on
        (["x = T()", "walk(*x)", "x"], "ab"),
        (["x = T()", "y = [*x]", "x[0] = 1", "y"], "abc"),
        (["x = T()", "x.sum().backward()", "x"], "ab"),
        (["x = T()", "y = train((x, 1))", "x"], "ab"),
        (["x = T()", "y = train([x])", "x"], "ab"),
        (["x = T()", "y = train({x})", "x"], "ab"),
        (["x = T()", "y = train({'a': x})", "x"], "ab"),
        (["from a import b", "b.look()", "b"], "a"),
        (["m = M()", "y = set_rate(m)", "m"], "ab"),
        (["x = T()", "y = f(x)", "y['a'][0] = 1", "x"], "abc"),
        (["x = T()", "y = z = [f(x)]", "y.append(1)", "x"], "abc"),
        (["y = []", "def f():\n    y.append(1)", "y"], "a"),
        (["x = T()", "y = []", "n = y.count(x)", "y"], "b"),
        (["r = default_rng(0)", "s = r", "y = f(s)", "s"], "abc"),
        (["r: Any = default_rng(0)", "y = f(r)", "r"], "ab"),
        (["d = Data(default_rng(0))", "n = f(d)", "d"], "ab"),
        (["w = T()", "def f(x):\n    if x:\n        w.look()", "f(1)", "w"], "abc"),
        (["w = T()", "def read(x):\n    w.data = x", "read = f\nread(1)", "w"], "a"),
    ],
)
def test_what_the_last_cell_needs(sources, expected):
    assert needed(*sources) == expected


@pytest.mark.parametrize(
    "call",
    [
        "accumulate(m)", "adapt(m)", "m.backward()", "m.clear()", "clip_grad_norm_(m, 1)", "m.clip(1)", "descend(m)",
        "finetune(m)", "m.fit(y)", "learn(m, 3)", "m.load_state_dict(s)", "next(m)", "optimize(m)", "m.pop(0)",
        "pretrain(m)", "m.remove(1)", "m.reset()", "m.set_rate(1)", "rng.shuffle(m)", "m.sort()", "m.step()",
        "train(m)", "tune(m)", "m.update(y)", "m.zero_grad()", "init_(m)",
    ],
)  # fmt: skip
def test_what_is_called_changes_it_though_its_value_is_kept(call):
    assert needed("m = M()", f"y = {call}", "m") == "ab"


@pytest.mark.parametrize(
    "call",
    [
        "above_zero(m)", "is_next(m)", "sorted(m)", "set(m)", "shuffled(m)", "share_next(m)", "share_of_next(m)",
        "next_sentence(m)", "step_cost(m)", "m.sum()", "m.mean(0)",
    ],
)  # fmt: skip
def test_what_is_called_only_reads_it(call):
    assert needed("m = M()", f"y = {call}", "m") == "a"


@pytest.mark.parametrize(
    "call",
    ["print(m)", "display(m)", "table(m)", "player(m)", "show(m)", "assert_equal(m, 1)", "isinstance(m, int)",
     "loss_curves(m)", "heads_figure(m)", "weight_map(m)", "all_maps(m)", "its_picture(m)", "path_player(m)"],
)  # fmt: skip
def test_what_only_shows_it_leaves_it(call):
    assert needed("m = M()", call, "m") == "a"


@pytest.mark.parametrize(
    "part",
    [
        "x[0]", "x.T", "x.reshape(2)", "x.ravel()", "x.transpose()", "x.swapaxes(0, 1)", "x.view()", "np.asarray(x)",
        "x.numpy()", "x.values()", "x.items()", "m.parameters()", "m.named_parameters()", "m.state_dict()", "Tensor(x)",
    ],
)  # fmt: skip
def test_a_part_of_it_is_changed(part):
    """Whoever changes the part changes the whole, and whoever changes the whole changes the part."""
    whole = "m" if part.startswith("m") else "x"
    assert needed(f"{whole} = f()", f"y = {part}", "y[0] = 1", whole) == "abc"
    assert needed(f"{whole} = f()", f"y = {part}", f"{whole}[0] = 1", "y") == "abc"


@pytest.mark.parametrize(
    "made",
    [
        "np.zeros_like(x)", "np.ones_like(x)", "np.empty_like(x)", "np.full_like(x, 1)", "x.copy()",
        "copy.deepcopy(x)", "np.zeros(x)", "np.ones(x)", "np.empty(x)", "np.full(x, 1)", "np.eye(x)", "np.arange(x)",
        "np.linspace(x)",
    ],
)  # fmt: skip
def test_a_new_array_of_its_size_is_no_part_of_it(made):
    assert needed("x = f()", f"y = {made}", "y += 1", "x") == "a"


@pytest.mark.parametrize(
    "made",
    ["default_rng(0)", "torch.generator()", "random.Random(0)", "RandomState(0)", "iter(x)", "cycle(x)"],
)
def test_each_use_of_a_generator_changes_it(made):
    assert needed(f"r = {made}", "y = f(r)", "r") == "ab"


@pytest.mark.parametrize("call", ["r.append(x)", "r.extend(x)", "r.insert(0, x)", "r.setdefault(1, x)"])
def test_what_a_container_is_given_stays_as_it_is(call):
    assert needed("x = f()", "r = []", call, "x") == "a"


@pytest.mark.parametrize(
    "call",
    [
        "np.random.seed(0)", "minigrad.manual_seed(0)", "backend.use('numpy')", "np.set_printoptions(precision=3)",
        "warnings.simplefilter('error')", "warnings.filterwarnings('error')", "atexit.register(f)",
    ],
)  # fmt: skip
def test_what_sets_a_module_is_a_change_of_it(call):
    module = call.split(".")[0]
    assert needed(f"import {module}", call, f"{module}.x") == "ab"


def test_needs_are_in_the_order_of_the_page():
    cells = {"z": "x = 1", "a": "y = x", "m": "x, y"}
    assert needs_of(cells)["m"] == ["z", "a"]


def test_a_cell_may_name_more():
    cells = {"a": "x = 1", "b": "y = x", "c": "print(1)"}
    assert needs_of(cells, {"c": ["b"]})["c"] == ["a", "b"]


@pytest.mark.parametrize("other", ["c", "d", "nowhere"])
def test_what_it_names_stands_above(other):
    with pytest.raises(ValueError, match=f"cell c says that it needs {other}, which is no cell above it"):
        needs_of({"a": "", "c": "", "d": ""}, {"c": [other]})


def test_a_cell_that_is_no_python_is_an_error():
    with pytest.raises(SyntaxError):
        needs_of({"a": "x ="})


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a\nx = 1\nf(x)", "import a\nx = 1"),
        ("x = train()\ny = x + 1", ""),
        ("x = train()\ny = 1", "\ny = 1"),
        ("x = np.ones(3)\ny = math.pi\nz = w(3)", "x = np.ones(3)\ny = math.pi"),
        ("@a\ndef f():\n    return 1\nf()", "@a\ndef f():\n    return 1"),
        ("def f():\n    return x\nx = g()", "def f():\n    return x"),
        ("x = g()\ndef f():\n    return x", ""),
        ("x = [1]\nx.append(2)\ny = x", "x = [1]"),
        ("print(1)", ""),
        ("x = [f(i) for i in y]", ""),
    ],
)
def test_what_a_cell_only_names(source, names):
    found, rest = split(source)
    assert found == names
    assert sorted((found + "\n" + rest).split()) == sorted(source.split())
