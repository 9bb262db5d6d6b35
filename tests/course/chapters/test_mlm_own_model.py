from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bert_course.chapters import mlm_own_model as own
from bert_course.common.light_stories import LENGTH, stories
from minigrad import Tensor, backend, random
from minigrad.bert.config import BertConfig
from minigrad.bert.data import PretrainingData
from minigrad.bert.model import BertForPreTraining

ROOT = Path(__file__).resolve().parents[3]


def of_solution():
    """What the solution's cell defines."""
    cells = json.loads((ROOT / "solutions" / "mlm.ipynb").read_text("utf-8"))["cells"]
    (cell,) = [one for one in cells if "mine" in one["metadata"].get("tags", [])]
    scope = {}
    exec("".join(cell["source"]), scope)
    return [scope[name] for name in own.ANSWERS]


def array(gradient):
    """As NumPy's, where there is one."""
    return None if gradient is None else np.array(backend.to_numpy(gradient))


@pytest.fixture(scope="module")
def small_batch():
    text = stories()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 64)
        return PretrainingData(text, text.tokenizer, 5, LENGTH, seed=3).next_batch()


def small_model():
    random.manual_seed(7)
    sizes = {"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 10}
    model = BertForPreTraining(
        BertConfig(
            stories().tokenizer.vocab_size, max_position_embeddings=LENGTH, initializer_range=0.3, **sizes
        )
    )
    return model.eval()  # dropout would draw for itself


@pytest.mark.parametrize("functions", [list(own.ANSWERS.values()), of_solution()], ids=["module", "solution"])
def test_loss_and_every_gradient_are_those_of_the_librarys_model(functions, small_batch, capsys):
    assert (small_batch["attention_mask"] == 0).any()
    parts, model, batch = own.own_parts(*functions), small_model(), small_batch
    assert capsys.readouterr().out.split() == [word for name in own.ANSWERS for word in (f"{name}:", "yours")]
    found = []
    for loss in (own.masked_loss(parts, model, batch), model(**batch).mlm_loss):
        model.zero_grad()
        loss.backward()
        found.append((loss.item(), {name: array(p.grad) for name, p in model.named_parameters()}))
    (ours, own_gradients), (theirs, gradients) = found
    assert ours == pytest.approx(theirs, rel=1e-5)
    reached = {
        name for name, gradient in gradients.items() if gradient is not None and np.abs(gradient).max() > 0
    }
    assert len(reached) == len(gradients) - 4  # but the pooler's two and the two of the next sentence
    largest = max(np.abs(gradients[name]).max() for name in reached)
    for name in reached:  # the keys' bias gets rounding alone: it moves all scores of a row by as much
        scale = max(np.abs(gradients[name]).max(), 1e-3 * largest)
        np.testing.assert_allclose(
            own_gradients[name] / scale, gradients[name] / scale, atol=1e-4, err_msg=name
        )


def not_written(X, W_1, b_1, W_2, b_2): ...


def raises(X, W_1, b_1, W_2, b_2):
    return np.matmul(X, W_1.T) @ W_2


def leaves_tensor(x, y, gain, bias, eps):
    return own.add_norm(x, y, gain, bias, eps).numpy()


def without_a_row(input_ids, token_type_ids, W_T, W_S, W_P):
    return own.embed(input_ids, token_type_ids, W_T, W_S, W_P)[:, 1:]


def unscaled(X, weights, h, mask):
    return own.multi_head(X * 1.001, weights, h, mask)


def stops_at_the_gain(x, y, gain, bias, eps):
    return own.add_norm(x, y, Tensor(gain.numpy()), bias, eps)


def stops_at_the_keys(X, weights, h, mask):
    return own.multi_head(X, {**weights, "W_K": weights["W_K"].detach()}, h, mask)


def reaches_x_twice(X, W_1, b_1, W_2, b_2):
    return own.feed_forward(X, W_1, b_1, W_2, b_2) + X - X.detach()


FAULTS = [
    ("feed_forward", not_written, "yours is not written yet"),
    ("feed_forward", raises, "yours raises "),
    ("add_norm", leaves_tensor, "yours returns ndarray, not Tensor"),
    ("embed", without_a_row, "yours returns the shape (2, 3, 3) where (2, 4, 3) is expected"),
    ("multi_head", unscaled, "yours returns other numbers, by up to "),
    ("add_norm", stops_at_the_gain, "in yours no gradient reaches gain"),
    ("multi_head", stops_at_the_keys, "in yours no gradient reaches W_K"),
    ("feed_forward", reaches_x_twice, "in yours another gradient reaches X"),
]


@pytest.mark.parametrize(
    ("name", "function", "words"), FAULTS, ids=[function.__name__ for _, function, _ in FAULTS]
)
def test_a_part_that_is_missing_or_wrong_is_named_and_the_courses_taken(
    name, function, words, capsys, monkeypatch
):
    monkeypatch.setattr(function, "__name__", name)
    parts = own.own_parts(*[function if one == name else right for one, right in own.ANSWERS.items()])
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert said.pop(name).startswith(f"the course's, because {words}")
    assert set(said.values()) == {"yours"}
    assert getattr(parts, name) is own.ANSWERS[name]


def test_parts_that_are_not_given_are_the_courses(capsys):
    parts = own.own_parts(own.embed)
    assert capsys.readouterr().out.count("the course's, because it was not given") == 3
    assert vars(parts) == own.ANSWERS


def test_numbers_that_are_not_finite_are_no_part(capsys):
    def add_norm(x, y, gain, bias, eps):
        return own.add_norm(x, y, gain, bias, eps) * float("nan")

    own.own_parts(add_norm)
    assert "add_norm: the course's, because yours returns other numbers" in capsys.readouterr().out
