"""What Jupyter alone runs, taken out of a cell: magics, the shell, help; and nothing that is Python."""

from __future__ import annotations

import pytest

from bert_course.common.jupyter import plain_python

pytestmark = pytest.mark.no_arrays


@pytest.mark.parametrize(
    ("text", "plain", "left_out"),
    [
        ("%%time\nx = 1\n", "\nx = 1\n", ["%%time"]),
        ("\n\n%%timeit -n 3\nx = 1", "\n\n\nx = 1", ["%%timeit -n 3"]),
        ("%%capture out\n%%time\nx = 1", "\n\nx = 1", ["%%capture out", "%%time"]),
        ("# mine\n%%time\nx = 1", "# mine\npass\nx = 1", ["%%time"]),
        ("%matplotlib inline\nx = 1", "pass\nx = 1", ["%matplotlib inline"]),
        ("def f():\n    %timeit 1\n    !ls\n", "def f():\n    pass\n    pass\n", ["%timeit 1", "!ls"]),
        ("%time x = f(3)\n", "x = f(3)\n", []),
        ("if a:\n    y = %time f(3)", "if a:\n    y = f(3)", []),
        ("%time\nx = 1", "pass\nx = 1", ["%time"]),
        ("t = %timeit -o f(3)\nfiles = !ls\n", "pass\npass\n", ["t = %timeit -o f(3)", "files = !ls"]),
        ("np.exp?\n?np.exp\nnp.exp??\nx.*e*?\n%time?", "pass\n" * 5, 5),
        ("!!ls 'it is\n! ls (\nx = 1", "pass\npass\nx = 1", ["!!ls 'it is", "! ls ("]),
        ("!pip install a \\\n  b\nx = 1", "pass\n\nx = 1", ["!pip install a \\"]),
        ("  x = 1\n  if x:\n      y = 2\n", "x = 1\nif x:\n    y = 2\n", []),
        ("%%time\n  x = 1\n  y = 2\n", "\nx = 1\ny = 2\n", ["%%time"]),
    ],
)
def test_what_jupyter_alone_runs_is_left_out(text, plain, left_out):
    found, lines = plain_python(text)
    assert found == plain
    assert lines == left_out or len(lines) == left_out


@pytest.mark.parametrize(
    "text",
    [
        "x = (7\n% 3)\n",
        "x = 7 \\\n  % 3\n",
        "x = [\n  '%d'\n  % 3]  # is it?\n",
        '"""\n%%time\n!ls\nwhy?\n"""\n',
        "x = '''it's (\n%timeit\n'''\n",
        "x = 'a\\\n!b'\n",
        "x = 'a\u2028% b'\n",
        "x = '(['  # ([{ '\n!= 3".replace("\n!= 3", "\ny = x != 3"),
        "f'{x}?'\nx = y %3\nz = a if b else '%'\n",
        "%%bash\nls\n%timeit\n",
        "",
        "\n  \n",
    ],
)
def test_what_is_python_or_no_python_at_all_stays(text):
    assert plain_python(text) == (text, [])


@pytest.mark.parametrize("piece", ["%", "'", "a?", "=", "[", "\\\n", "x = ", "%time "])
def test_a_hostile_text_takes_no_time(piece):
    plain_python(piece * 50_000)
