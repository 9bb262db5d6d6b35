"""A learner's answers in the course's one file: put in where they are right on its engine, named where they are not."""

from __future__ import annotations

import base64
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_course import one_file
from bert_course.common.engine import course_file
from bert_course.one_file import FROM_THE_COURSE, LIKE, ONES_OWN, own_file, two_steps
from bert_course.parts import PARTS
from minigrad import Tensor, ops

ROOT = Path(__file__).parents[2]
TEXT = course_file().read_text("utf-8")

pytestmark = pytest.mark.numpy_only("the file is NumPy's alone")


@pytest.fixture(scope="module")
def solved():
    return own_file(ROOT / "solutions")


ADDED = (FROM_THE_COURSE, ONES_OWN, "from types import SimpleNamespace")


def code(text):
    """The lines of code of a file, without what a learner's has beside the course's."""
    lines = [line for line in text.split("\n") if line.strip() and line not in ADDED]
    return [line for line in lines if not line.startswith("parts = ops =")]


AS_MINE = code(TEXT.replace("solutions/bert.py", "my_bert.py", 1))


def test_the_solutions_make_a_file_of_their_own_that_trains_alike(solved):
    assert solved.own == tuple(part.name for part in PARTS)
    np.testing.assert_allclose(two_steps(solved.text), two_steps(TEXT), atol=LIKE)
    assert "minigrad" not in solved.text
    assert "bert_course" not in solved.text


def test_each_function_of_it_says_whose_it_is(solved):
    said = re.findall(rf"({FROM_THE_COURSE}|{ONES_OWN})\n(?:def|class) (\w+)", solved.text)
    assert {name for whose, name in said if whose == ONES_OWN} == {part.name for part in PARTS}
    assert tuple(
        name for whose, name in said if whose == FROM_THE_COURSE and name in ("Tensor", "train")
    ) == ("Tensor", "train")
    assert len(said) == len(re.findall(r"^(?:def|class) ", solved.text, re.MULTILINE))


def test_a_link_saves_it(solved):
    link = solved.download()
    assert re.fullmatch(r"my_bert.py, \d+ lines", repr(link))
    ((name, content),) = re.findall(
        'download="(.*?)" href="data:text/x-python;base64,(.*?)"', link._repr_html_()
    )
    assert name == "my_bert.py"
    assert base64.b64decode(content).decode() == solved.text


def test_without_answers_it_is_the_courses(tmp_path, capsys):
    found = own_file(tmp_path)
    assert code(found.text) == AS_MINE
    said = " ".join(capsys.readouterr().out.split())
    assert said == f"all {len(PARTS)} functions are the course's; yours are not there yet"


# --- Answers that are at hand ----------------------------------------------------------------------------


def in_halves(x, d_k, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, d_k).transpose(1, 2)


SCALE = 0.5


def multi_head(X, weights, h, mask):
    d_k = X.shape[2] // h
    q, k, v = (in_halves(X @ weights[f"W_{n}"] + weights[f"b_{n}"], d_k, h) for n in "QKV")
    A = ops.softmax(q @ k.transpose(2, 3) * d_k**-SCALE + mask)
    return (A @ v).transpose(1, 2).reshape(*X.shape) @ weights["W_O"] + weights["b_O"]


def test_an_answer_comes_with_what_it_calls(tmp_path):
    found = own_file(tmp_path, multi_head=multi_head)
    assert found.own == ("multi_head",)
    assert found.text.index("SCALE = 0.5") < found.text.index("def multi_head")
    assert found.text.index("def in_halves") < found.text.index("def multi_head")
    np.testing.assert_allclose(two_steps(found.text), two_steps(TEXT), atol=LIKE)


def block(X, layer, parts, h, mask, eps):
    X = parts.add_norm(X, parts.multi_head(X, layer["attention"], h, mask), *layer["attention_norm"], eps)
    return parts.add_norm(X, parts.feed_forward(X, *layer["feed_forward"]), *layer["output_norm"], eps)


def bert(batch, parts, model):
    tables = model["W_T"], model["W_S"], model["W_P"]
    X = parts.embed(batch["input_ids"], batch["token_type_ids"], *tables)
    X = parts.layer_norm(X, *model["norm"], model["eps"])
    mask = parts.padding_mask(batch["attention_mask"], X.dtype)
    for layer in model["layers"]:
        X = block(X, layer, parts, model["h"], mask, model["eps"])
    return X, parts.pool(X, *model["pooler"])


def train_step(batch, parts, model, lr):
    mlm, nsp = parts.losses(batch, model)
    (mlm + nsp).backward()
    model["t"] += 1
    parameters = parts.parameters(model)  # the name of a function in the file, and here a variable
    gradients, _ = parts.clip_gradients([p.grad for p in parameters], 1.0)
    for p, g, means in zip(parameters, gradients, model["means"], strict=True):
        kept = 1 - 0.01 * lr * (p.data.ndim > 1)
        p.data, *means[:] = parts.adam_step(kept * p.data, g, *means, model["t"], lr, 0.9, 0.999, 1e-6)
        p.grad = None
    return float(mlm.data), float(nsp.data)


def test_a_variable_may_have_the_name_of_a_part():
    """`parts` of the file is for `losses` too, which no exercise's is."""
    course = one_file._with_names(TEXT)
    text = one_file._with(course, "train_step", train_step)
    assert "parameters = parts.parameters(model)" in text
    np.testing.assert_allclose(two_steps(text), two_steps(course), atol=LIKE)


def test_parts_that_are_handed_on_are_the_functions_of_the_file(tmp_path):
    assert own_file(tmp_path, bert=bert).own == ("bert",)


def of_the_library_alone():
    def multi_head(X, weights, h, mask):
        B, L, d = X.shape
        q, k, v = (
            (X @ weights[f"W_{n}"] + weights[f"b_{n}"]).reshape(B, L, h, d // h).permute(0, 2, 1, 3)
            for n in "QKV"
        )
        z = ops.softmax(q @ k.transpose(2, 3) / math.sqrt(d // h) + mask) @ v
        return z.permute(0, 2, 1, 3).reshape(B, L, d) @ weights["W_O"] + weights["b_O"]

    return multi_head


def softmax(S):
    A = np.exp(S.data - S.data.max(axis=-1, keepdims=True))
    A = A / A.sum(axis=-1, keepdims=True)
    return Tensor.from_op(A, (S,), lambda dA: (A * dA,))


TABLE = {"scale": 1.0}


def feed_forward(X, W_1, b_1, W_2, b_2):
    return ops.gelu(X @ W_1 + b_1) @ W_2 * TABLE["scale"] + b_2


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        (
            "feed_forward",
            feed_forward,
            "on the engine of the file yours raises TypeError: TABLE, a dict, cannot go along",
        ),
        (
            "multi_head",
            of_the_library_alone(),
            "on the engine of the file yours raises AttributeError: 'Tensor' object",
        ),
        ("softmax", softmax, "check.softmax finds a mistake in yours"),
    ],
)
def test_why_an_answer_is_not_in_it_is_said(tmp_path, capsys, name, answer, words):
    found = own_file(tmp_path, **{name: answer})
    assert found.own == ()
    assert code(found.text) == AS_MINE
    assert f"{name}: the course's; {words}" in capsys.readouterr().out


# --- The command, and the page ---------------------------------------------------------------------------


def test_the_command_writes_the_file_and_trains_it(tmp_path):
    folder = tmp_path / "my-exercises"
    folder.mkdir()
    shutil.copy(ROOT / "solutions" / "nsp.ipynb", folder)
    (tmp_path / "some.txt").write_text("The cat sees it. The dog hears it. " * 5, "utf-8")
    command = [sys.executable, "-m", "bert_course.one_file", "my-exercises", "mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("yours: make_pair\nthe course's; yours are not there yet: unbroadcast, ")
    assert done.stdout.endswith("written: mine.py\n")
    text = (tmp_path / "mine.py").read_text("utf-8")
    assert f"{ONES_OWN}\ndef make_pair" in text
    run = [sys.executable, "mine.py", "some.txt", "2"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "step 2: words" in done.stdout


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    command = [sys.executable, "-m", "bert_course.one_file", str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "nowhere is no folder: expected one with exercises" in done.stderr


def test_a_page_brings_the_answers_of_all_chapters_with_parts():
    script = (ROOT / "book" / "site" / "static" / "python" / "answers.js").read_text("utf-8")
    (names,) = re.findall(r"const PARTS = \[(.*?)\];", script, re.DOTALL)
    assert re.findall(r'"(\w+)"', names) == list(dict.fromkeys(part.chapter for part in PARTS))
