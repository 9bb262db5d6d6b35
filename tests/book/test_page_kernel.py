"""The kernel of the site's pages does what Jupyter's does, as far as a page can tell."""

from __future__ import annotations

import builtins
import json
import sys
import warnings
from typing import Any

import pytest

from book.site.python.packages.page_kernel import MOST_PIECES, MOST_TEXT, Kernel, pretty
from minigrad import random

pytestmark = pytest.mark.no_arrays


class Page:
    """A kernel and what it has put out."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, Any]] = []
        self.kernel = Kernel(self.outputs.append)

    def run(self, source: str, draws: list[int] | None = None) -> list[dict[str, Any]]:
        """The outputs of a cell."""
        self.outputs.clear()
        self.well = self.kernel.run(source, draws)
        return list(self.outputs)


@pytest.fixture
def page() -> Page:
    """A fresh one."""
    return Page()


def result(text: str, **more: str) -> dict[str, Any]:
    """A value as an output."""
    return {"output_type": "execute_result", "data": {"text/plain": text, **more}, "metadata": {}}


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    """Printed text as an output."""
    return {"output_type": "stream", "name": name, "text": text}


@pytest.mark.parametrize("source", ["a = 1", "None", "1;", "", "# nothing", "for i in range(3):\n    i"])
def test_the_last_expression_is_shown_and_nothing_else(page, source):
    assert page.run("a = 1\na + 1") == [result("2")]
    assert page.well
    assert page.run(source) == []


def test_lines_come_as_they_are_printed(page):
    seen: list[int] = []
    page.kernel.names["seen"] = lambda: seen.append(len(page.outputs))
    outputs = page.run("print('one')\nseen()\nprint('two', end='')\nseen()\n3")
    assert outputs == [printed("one\n"), printed("two"), result("3")]
    assert seen == [1, 1]


def test_standard_error_is_another_stream(page):
    assert page.run("import sys\nprint('beware', file=sys.stderr)") == [printed("beware\n", "stderr")]


def test_names_stay_until_they_are_forgotten(page):
    page.run("a = 1\ndef f(): return a")
    assert page.run("a = 2\nf()") == [result("2")]
    page.kernel.forget()
    assert page.run("f()")[0]["ename"] == "NameError"


def test_what_a_value_says_of_itself(page):
    source = """
class Shown:
    def __repr__(self): return "plain"
    def _repr_html_(self): return "<b>rich</b>"
    def _repr_markdown_(self): return "**rich**", {"source": 3}
"""
    page.run(source)
    (output,) = page.run("Shown()")
    assert output["data"] == {"text/plain": "plain", "text/html": "<b>rich</b>", "text/markdown": "**rich**"}
    assert output["metadata"] == {"text/markdown": {"source": 3}}
    (output,) = page.run("Shown")  # a class has the method, but is no value that says this
    assert list(output["data"]) == ["text/plain"]


def test_display_shows_at_once_and_after_what_was_printed(page):
    outputs = page.run("from IPython.display import display\nprint('a', end='')\ndisplay([1])\nprint('b')")
    assert [one["output_type"] for one in outputs] == ["stream", "display_data", "stream"]
    assert outputs[1]["data"] == {"text/plain": "[1]"}


def test_an_error_is_told_with_the_lines_of_cells(page):
    page.run("def f(x):\n    return int(x)")
    cell = "import functools; print('half', end='')\n\nlist(map(functools.partial(f), 'a'))"
    before, output = page.run(cell)
    assert before == printed("half")
    assert output == {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "invalid literal for int() with base 10: 'a'",
        "traceback": [
            "line 3",
            "    list(map(functools.partial(f), 'a'))",
            "line 2, in f",
            "    return int(x)",
            "ValueError: invalid literal for int() with base 10: 'a'",
        ],
    }
    assert not page.well


def test_a_mistake_in_the_syntax_shows_its_place(page):
    (output,) = page.run("a = 1\nb = = 2")
    assert output["traceback"] == ["line 2", "    b = = 2", "        ^", "SyntaxError: invalid syntax"]


def test_draws_start_from_the_state_that_is_asked_for(page):
    draw = "from minigrad import random\nrandom.generator().random()"
    before = random.get_state()
    try:
        one, other, again = (page.run(draw, state) for state in ([3, 5], [3, 6], [3, 5]))
        assert one == again != other
        page.run(draw, [3, 5])
        assert random.get_state() == {"seed": 3, "draws": 6}
    finally:
        random.set_state(before)


def test_sources_of_cells_can_be_read(page):
    page.run("def f(x):\n    return x  # as it is")
    assert page.run("import inspect\ninspect.getsource(f)") == [
        result(repr("def f(x):\n    return x  # as it is\n"))
    ]


def test_a_class_of_a_cell_belongs_to_main(page):
    page.run("from dataclasses import dataclass\n@dataclass\nclass Pair:\n    a: int\n    b: 'int' = 2")
    assert page.run("Pair(1), Pair.__module__") == [result("(Pair(a=1, b=2), '__main__')")]


def test_modules_are_left_as_they_were(page):
    before = {name: sys.modules.get(name) for name in ("__main__", "IPython")}
    page.run("import IPython")
    assert {name: sys.modules.get(name) for name in before} == before


def test_the_shell_says_which_cell_a_function_is_of_and_which_failed(page):
    page.run(
        "from IPython import get_ipython\nran = []\nget_ipython().events.register('post_run_cell', ran.append)"
    )
    page.run("def f(): pass")
    page.run("f = (")
    page.run("1 / 0")
    place = "get_ipython().compile.format_code_name(f.__code__.co_filename)"
    assert page.run(place) == [result("('Cell', 'In[2]')")]
    found = page.kernel.names["ran"]
    assert [one.execution_count for one in found] == [1, 2, 3, 4, 5]
    assert isinstance(found[2].error_before_exec, SyntaxError)
    assert isinstance(found[3].error_in_exec, ZeroDivisionError)
    assert found[1].error_before_exec is found[1].error_in_exec is None


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 30, "y" * 30, "z" * 30],
        {"name" * 5: list(range(30)), "other": {"a" * 40: "b" * 40}},
        ("x" * 78,),
        ("x" * 76,),
        {"b" * 50, "a" * 50},
        [["x" * 40, "y" * 34], ["x" * 40, "y" * 35]],
        [(1, "a" * 30), (2, "b" * 30), (3, "c" * 30)],
        {"a": [], "b" * 80: ()},
        [["x" * 37, "y" * 34]],
        [["x" * 37, "y" * 33]],
        [[["x" * 37, "y" * 32]]],
    ],
    ids=lambda value: type(value).__name__,  # a set has another order in each process
)
def test_long_values_break_as_in_ipython(value):
    printer = pytest.importorskip("IPython.lib.pretty")
    assert pretty(value) == printer.pretty(value)


def text_of(outputs: list[dict[str, Any]], name: str = "stdout") -> str:
    """All that was printed there."""
    return "".join(one["text"] for one in outputs if one["output_type"] == "stream" and one["name"] == name)


@pytest.mark.parametrize(
    ("source", "characters"),
    [
        (f"for i in range({2 * MOST_PIECES}):\n    print(1)", 2 * MOST_PIECES),
        (f"print('x' * {3 * MOST_TEXT})", MOST_TEXT),
        (f"for i in range(3):\n    print('x' * ({MOST_TEXT} // 2 - 1))", MOST_TEXT),
        (f"for i in range(3 * {MOST_TEXT}):\n    print('x', end='')", MOST_TEXT),
    ],
)
def test_a_cell_that_prints_too_much_is_cut_and_says_so_once(page, source, characters):
    outputs = page.run(f"{source}\n1 / 0")
    assert len(outputs) <= MOST_PIECES + 2
    assert len(text_of(outputs)) == characters
    assert text_of(outputs, "stderr") == (
        "… a page shows 5,000 lines of a cell, or 200,000 characters, and no more.\n"
    )
    assert outputs[-1]["ename"] == "ZeroDivisionError"  # what ends a cell is told in any case
    assert page.run("print('the next cell has all its room')\n3")[1:] == [result("3")]


def test_too_many_displayed_values_are_cut(page):
    outputs = page.run(
        f"from IPython.display import display\nfor i in range(2 * {MOST_PIECES}):\n    display(i)\ni"
    )
    assert [one["output_type"] for one in outputs[-2:]] == ["stream", "execute_result"]
    assert len(outputs) == MOST_PIECES + 2


def test_a_value_that_says_too_much_of_itself_is_cut(page):
    (output,) = page.run(f"'x' * {2 * MOST_TEXT}")
    assert output["data"]["text/plain"] == "'" + "x" * (MOST_TEXT - 1) + " …"


def test_just_enough_is_not_cut(page):
    assert text_of(page.run(f"print('x' * {MOST_TEXT - 2})"), "stderr") == ""
    assert text_of(page.run(f"for i in range({MOST_PIECES - 1}):\n    print(1)"), "stderr") == ""


def test_nobody_can_be_asked_in_a_page(page):
    asks = builtins.input
    (error,) = page.run("input('a number: ')")
    assert (
        error["traceback"][-1] == "RuntimeError: input() cannot ask in a page: write the value into the cell"
    )
    assert builtins.input is asks


def test_a_package_that_is_not_there_is_told(page):
    (error,) = page.run("import no_such_package")
    assert error["traceback"][-2:] == [
        "ModuleNotFoundError: No module named 'no_such_package'",
        "In a page there are NumPy and the course's own package; others are for Jupyter.",
    ]


# --- What raises where a value is shown or an error is told ----------------------------------------------

DEEP = "a = []\nfor _ in range(100_000):\n    a = [a]\na"


def shows(method: str, body: str, last: str = "A()") -> str:
    """A cell that shows a value whose method has this body."""
    return f"class A:\n    def {method}(self, *_): {body}\n{last}"


@pytest.mark.parametrize(
    ("source", "ename"),
    [
        (shows("__repr__", "return self.dat"), "AttributeError"),
        (shows("__repr__", "return 3"), "TypeError"),
        (shows("__repr__", "return repr(self)"), "RecursionError"),
        (shows("__repr__", "raise SystemExit"), "SystemExit"),
        (shows("__repr__", "raise KeyboardInterrupt"), "KeyboardInterrupt"),
        (shows("__repr__", "1 / 0", "{1: A()}"), "ZeroDivisionError"),
        (shows("__str__", "1 / 0", "print(A())"), "ZeroDivisionError"),
        ("class M(type):\n    def __repr__(self): 1 / 0\nclass A(metaclass=M): pass\nA", "ZeroDivisionError"),
        (DEEP, "RecursionError"),
        *[
            (shows(method, "1 / 0"), "ZeroDivisionError")
            for method in ("_repr_html_", "_repr_svg_", "_repr_png_", "_repr_markdown_", "_repr_latex_")
        ],
        (shows("_repr_html_", "return 3"), "TypeError"),
        (shows("_repr_png_", "return [1]"), "TypeError"),
        (shows("_repr_html_", "return 'a', 'b', 'c'"), "ValueError"),
        (shows("_repr_html_", "return 'a', {'b': object()}"), "TypeError"),
        (shows("_repr_html_", "return 'a', {'b': float('nan')}"), "ValueError"),
    ],
)
def test_a_value_that_cannot_be_shown_is_an_error_of_the_cell(page, source, ename):
    page.run("kept = 3")
    outputs = page.run(f"print('before')\n{source}")
    assert outputs[0] == printed("before\n")
    assert outputs[-1]["output_type"] == "error"
    assert outputs[-1]["ename"] == ename
    assert len(outputs[-1]["traceback"]) < 50
    json.dumps(outputs, allow_nan=False)  # as the page's JavaScript gets them
    assert not page.well
    assert page.run("kept") == [result("3")]
    assert page.well


def test_the_traceback_names_the_line_of_the_method(page):
    (output,) = page.run("class A:\n    def __repr__(self):\n        return self.dat\nA()")
    assert output["traceback"] == [
        "line 3, in __repr__",
        "    return self.dat",
        "AttributeError: 'A' object has no attribute 'dat'",
    ]


@pytest.mark.parametrize("method", ["__repr__", "_repr_html_"])
def test_what_cannot_be_displayed_does_not_end_the_cell(page, method):
    """As in Jupyter: the next line runs."""
    page.kernel = Kernel(page.outputs.append, slices=True)  # which shows what is updated
    page.run(shows(method, "1 / 0", "from IPython.display import display"))
    outputs = page.run("display(A(), 4)\ndisplay(5, display_id=True).update(A())\nb = 6\nb")
    assert [one["ename"] for one in outputs if one["output_type"] == "error"] == ["ZeroDivisionError"] * 2
    shown = [one["data"]["text/plain"] for one in outputs if one["output_type"] == "display_data"]
    assert "4" in shown
    assert outputs[-1] == result("6")
    assert not page.well


def test_what_else_a_value_says_of_itself_is_shown(page):
    source = "class A:\n    def __repr__(self): return 'plain'\n    def _repr_html_(self): 1 / 0\nA()"
    shown, error = page.run(source)
    assert error["ename"] == "ZeroDivisionError"
    assert shown == result("plain")


def test_a_value_that_answers_to_every_name_is_shown_by_its_repr(page):
    assert page.run(shows("__getattr__", "return lambda: self", "repr(A())[:9]")) == [result("'<__main__'")]
    (output,) = page.run("A()")
    assert list(output["data"]) == ["text/plain"]
    (output,) = page.run("class A:\n    def __getattr__(self, name): return self.kept[name]\nA()")
    assert list(output["data"]) == ["text/plain"]
    assert page.well


def test_a_picture_is_told_as_in_a_notebooks_file(page):
    (output,) = page.run(shows("_repr_png_", "return b'png'"))
    assert output["data"]["image/png"] == "cG5n"


def test_items_that_cannot_be_compared_are_shown_in_their_order(page):
    (output,) = page.run(shows("__lt__", "1 / 0", "{A(), A()} | set(range(40))"))
    assert output["output_type"] == "execute_result"


def test_a_container_that_holds_itself_is_shown(page):
    printer = pytest.importorskip("IPython.lib.pretty")
    for source in ("a = [*range(40)]; a.append(a)", "a = dict.fromkeys(range(40)); a[1] = a"):
        (output,) = page.run(f"{source}\na")
        assert output["data"]["text/plain"] == printer.pretty(page.kernel.names["a"])


@pytest.mark.parametrize("method", ["__str__", "__repr__"])
@pytest.mark.parametrize("does", ["1 / 0", "return 3", "return str(self)", "raise KeyboardInterrupt"])
@pytest.mark.parametrize("base", ["Exception", "BaseException", "SyntaxError"])
def test_an_error_that_cannot_be_told_is_named(page, method, does, base):
    (output,) = page.run(f"class Own({base}):\n    def {method}(self): {does}\nraise Own('x')")
    assert output["ename"] == "Own"
    assert "line 3" in output["traceback"]
    assert output["traceback"][-1].startswith("Own") or "Own" in output["traceback"][-1]
    assert not page.well
    assert page.run("1") == [result("1")]


@pytest.mark.parametrize(
    "source",
    [
        "class Own(SyntaxError):\n    filename = 5\nraise Own",
        "class Own(SyntaxError):\n    filename = '<cell 1>'\n    lineno = text = offset = object()\nraise Own",
        "class Own(Exception):\n    __notes__ = 3\nraise Own",
        "class Own(Exception):\n    __traceback__ = 3\nraise Own",
        "class Own(Exception):\n    def __getattribute__(self, name): 1 / 0\nraise Own",
        "class M(type):\n    __name__ = property(lambda self: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E",
        "class M(type):\n    __qualname__ = 3\nclass E(Exception, metaclass=M): pass\nE.__module__ = 4\nraise E",
        "class T(str):\n    def __str__(self): 1 / 0\nclass E(Exception):\n    __str__ = lambda self: T('x')\nraise E",
    ],
)
def test_an_error_that_lies_about_itself_is_named(page, source):
    (output,) = page.run(source)
    assert output["output_type"] == "error"
    assert all(isinstance(output[key], str) for key in ("ename", "evalue"))
    json.dumps(output)
    assert not page.well
    assert page.run("1") == [result("1")]


def test_a_deep_traceback_is_cut_in_its_middle(page):
    (output,) = page.run("def f(n): return n and f(n - 1) or 1 / 0\nf(500)")
    lines = output["traceback"]
    assert lines[0] == "line 2"
    assert lines[-1].startswith("ZeroDivisionError")
    assert len(lines) < 50
    assert any("482 more" in line for line in lines), lines


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.modules.pop('IPython')\nsys.modules.pop('IPython.display')",
        "import sys\nsys.stdout = sys.stderr = None",
        "import builtins\ndel builtins.input",
        "from IPython import get_ipython\nget_ipython().events.register('post_run_cell', lambda result: 1 / 0)",
        "from IPython import get_ipython\nget_ipython().events.register('post_run_cell', lambda: 0)",
    ],
)
def test_nothing_that_a_cell_changes_ends_the_kernel(page, source):
    page.run(source)
    assert page.run("print(1)\n2")[:2] == [printed("1\n"), result("2")]
    assert page.well


# --- What is Jupyter's -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "%%time\na = 1\na + 1",
        "\n%%time\na = 1\na + 1",
        "# how long\n%%time -q\na = 1\na + 1",
        "%%timeit -n 10\na = 1\na + 1",
        "%%capture\na = 1\na + 1",
        "%%time\n%%prun\na = 1\na + 1",
        "%time a = 1\na + 1",
        "a = 1\n%time a + 1",
        "for a in [1]:\n    %time b = a\nb + 1",
    ],
)
def test_a_cell_that_jupyter_measures_runs(page, source):
    assert page.run(source) == [result("2")]
    assert page.well


@pytest.mark.parametrize(
    ("source", "left_out"),
    [
        ("%matplotlib inline\na = 1\na + 1", "%matplotlib inline"),
        ("a = 1\n%load_ext autoreload\n%autoreload 2\na + 1", "%load_ext autoreload, %autoreload 2"),
        ("!pip install numpy\na = 1\na + 1", "!pip install numpy"),
        ("!echo $(ls | grep [0-9 ) {a} \\n 07\na = 1\na + 1", "!echo $(ls | grep [0-9 ) {a} \\n 07"),
        ("a = 1\nprint?\na + 1", "print?"),
        ("a = 1\na.real??\na + 1", "a.real??"),
        ("%timeit -n 3 sum([1])\na = 1\na + 1", "%timeit -n 3 sum([1])"),
        ("if True:\n    !ls\n    a = 1\na + 1", "!ls"),
        ("!ls \\\n  -l\na = 1\na + 1", "!ls \\"),
        ("a = 1\na + 1\n%who", "%who"),
    ],
)
def test_a_line_of_jupyters_is_left_out_and_that_is_said(page, source, left_out):
    said, *rest = page.run(source)
    assert said == printed(f"Only Jupyter runs this, so it is left out: {left_out}\n", "stderr")
    assert rest == ([] if source.endswith("%who") else [result("2")])
    assert page.well


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("%%bash\nls", "%%bash"),
        ("a = !ls", "!"),
        ("a = 1\nb = %who_ls", "%"),
        ("a = 1\nawait a", "await"),
        ("async with a as b:\n    pass", "await"),
        ("async for a in b:\n    pass", "await"),
        ("[x async for x in a]", "await"),
    ],
)
def test_what_only_jupyter_can_do_is_said_in_a_sentence(page, source, names):
    (error,) = page.run(source)
    assert error["ename"] == "SyntaxError"
    assert error["traceback"][-1].startswith("SyntaxError: Only Jupyter runs ")
    assert names in error["traceback"][-1]
    assert not page.well
    assert page.run("1") == [result("1")]


@pytest.mark.parametrize(
    "source",
    [
        "a = (7\n  % 4)\na",
        "a = 7 \\\n  % 4\na",
        "a = 7\na %= 4\na",
        's = """\n%time\n!ls\n%%bash\nprint?\n"""\nlen(s) - 22',
        "async def f():\n    await g()\n3",
        "a = 3 # why?\na",
    ],
)
def test_what_looks_like_it_is_pythons(page, source):
    assert page.run(source) == [result("3")]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("%time a = 1\nb = = 2", "line 2"),
        ("def f():\n    await g()", "line 2"),
        ("%matplotlib inline\n1 / 0", "line 2"),
        ("a = (1,\nb = 2\n%time b", "line 1"),
        ("a = 1\n  % 4", "line 2"),
    ],
)
def test_a_mistake_beside_it_is_told_with_its_line(page, source, line):
    error = page.run(source)[-1]
    assert error["traceback"][0] == line
    assert "Jupyter" not in error["traceback"][-1]


def test_a_warning_of_the_parser_comes_once(page):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        page.run("r = '\\d'")
    assert len(seen) == 1
