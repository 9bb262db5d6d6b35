"""Shape comments are executed: true ones pass, false ones are told, and what cannot be held is told too."""

from __future__ import annotations

import pytest

from book.make.shapes import ShapeKernel, _comments, shape_comment

pytestmark = pytest.mark.no_arrays


def complaints(*cells: str) -> list[str]:
    """What is wrong with the shape comments of these cells, none of which may fail."""
    kernel = ShapeKernel(lambda output: None)
    for cell in cells:
        assert kernel.run(cell), cell
    return list(kernel.complaints)


START = "import numpy as np\nX = np.zeros((3, 4)); W = np.zeros((4, 2))"


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("(3, 4)", [("3", "4")]),
        ("(L, d_k)", [("L", "d_k")]),
        ("(3, 4) (4, 2) -> (3, 2)", [("3", "2")]),
        ("(3, 4) @ (4, 2) → (3, 2)", [("3", "2")]),
        ("(L, d_k), (L, d_k), (L, d_v)", [("L", "d_k"), ("L", "d_k"), ("L", "d_v")]),
        ("(L, L), each row sums to 1", [("L", "L")]),
        ("(B, h·d_k, 2*n)", [("B", "h·d_k", "2*n")]),
        ("(3,)", [("3",)]),
        ("()", [()]),
        ("(..., n)", [("...", "n")]),
        ("(water)", None),
        ("(see chapter 2)", None),
        ("bank  (L, d_model) = (3, 4)", None),
        ("what a token asks for", None),
    ],
)
def test_what_a_comment_says(text, shapes):
    assert shape_comment(text) == shapes


@pytest.mark.parametrize(
    "line",
    [
        "Y = X @ W  # (3, 4) (4, 2) -> (3, 2)",
        "Y = X @ W  # (L, d_k)",
        "L = 3; Y = X @ W  # (L, 2)",
        "a, b = X, W  # (3, 4), (4, 2)",
        "a, b = X, X  # (3, 4)",
        "Y = np.concatenate(\n    [X, X],\n    axis=1,\n)  # (3, 2*4)",
        "n = 4\nY = X.reshape(-1)  # (3·n,)",
        "for x in X:  # (4,)\n    pass",
        "def f(x):\n    return x.T  # (4, 3)\nf(X)",
        "L = 99\ndef f(x):\n    y = x  # (L, d)\n    return y\nf(X)",  # a name of the page is none of the function's
        "X += 1  # (3, 4)",
        "Y = X[None]  # (..., 3, 4)",
        "total = float(X.sum())  # ()",
        "if True:\n    Y = X  # (3, 4)",
    ],
)
def test_true_comments_pass(line):
    assert complaints(START, line) == []
    assert len(_comments(line)) == 1


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("Z = X @ W  # (3, 4) (4, 2) -> (3, 4)", "<cell 2>, line 1: it says (3, 4), and the shape is (3, 2)"),
        ("Z = X  # (L, L)", "it says (L, L), and the shape is (3, 4)"),
        ("L = 5\nZ = X  # (L, 4)", "line 2: it says (L, 4), and the shape is (3, 4)"),
        ("a, b = X, W  # (L, d), (L, d)", "it says (L, d), and the shape is (4, 2)"),
        ("a, b = X, W  # (3, 4), (4, 2), (1,)", "3 shapes for 2 values"),
        ("Z = X  # (4,)", "it says (4), and the shape is (3, 4)"),
        (
            "def f(x):\n    return x  # (4, 3)\nf(X)",
            "<cell 2>, line 2: it says (4, 3), and the shape is (3, 4)",
        ),
        ("def f(L):\n    Z = X  # (L, 4)\nf(7)", "it says (L, 4)"),
        ("Z = 'text'  # (3, 4)", "the value is a str, which has no shape"),
        ("print(X)  # (3, 4)", "no value to hold '# (3, 4)' against"),
    ],
)
def test_false_comments_are_told(line, complaint):
    (told,) = complaints(START, line)
    assert complaint in told


def test_a_line_that_runs_often_is_told_once():
    assert len(complaints(START, "for i in range(9):\n    Z = X  # (1, 1)")) == 1


def test_a_cell_shows_what_it_showed():
    shown: list[dict[str, object]] = []
    kernel = ShapeKernel(shown.append)
    assert kernel.run(f"{START}\nZ = X  # (3, 4)")
    assert shown == []
    assert kernel.run("Z.shape")
    assert [output["data"] for output in shown] == [{"text/plain": "(3, 4)"}]


def test_the_page_still_finds_its_own_functions_source():
    cell = "import inspect\ndef f():\n    return 1  # one\nassert 'return 1  # one' in inspect.getsource(f)"
    assert complaints(cell) == []
