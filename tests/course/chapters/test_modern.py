"""Chapter `modern`: each recipe is BERT but for what its name says, and all are judged alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bert_course.chapters import modern
from bert_course.chapters.modern import RECIPES, Detection, Encoder, Model, Probe, config_of
from minigrad import no_grad, random
from minigrad.backend import to_numpy
from minigrad.bert.config import IGNORED
from minigrad.bert.model import BertForPreTraining
from minigrad.tensor import Tensor


@pytest.fixture(scope="module")
def batch():
    """Eight pairs, two of them padded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 64)
        found = modern.batches_of("light", 0).next_batch()
    return {name: values[:8] for name, values in found.items()}


def model_of(name, seed=0):
    random.manual_seed(seed)
    return Model(config_of("light"), RECIPES[name])


def library_names(state):
    """The names of the library's BertForPreTraining for those of a Model with BERT's recipe."""
    tables = {
        "words": "word_embeddings",
        "positions": "position_embeddings",
        "segments": "token_type_embeddings",
    }
    parts = {
        "attention.query": "attention.self.query",
        "attention.key": "attention.self.key",
        "attention.value": "attention.self.value",
        "attention.dense": "attention.output.dense",
        "attention_LayerNorm": "attention.output.LayerNorm",
        "feed_forward.intermediate": "intermediate.dense",
        "feed_forward.output": "output.dense",
        "output_LayerNorm": "output.LayerNorm",
    }
    for name in state:
        new = name.replace("pooler.", "bert.pooler.").replace(
            "encoder.LayerNorm", "bert.embeddings.LayerNorm"
        )
        for old, table in tables.items():
            new = new.replace(f"encoder.{old}.", f"bert.embeddings.{table}.")
        for old, part in parts.items():
            new = new.replace(f"{old}.", f"{part}.") if new.startswith("encoder.layers.") else new
        yield name, new.replace("encoder.layers.", "bert.encoder.layer.")


def test_the_recipe_of_bert_is_the_librarys(batch):
    ours, theirs = model_of("BERT"), BertForPreTraining(config_of("light"))
    names = dict(library_names(ours.state_dict()))
    theirs.load_state_dict({names[name]: values for name, values in ours.state_dict().items()})
    loss, expected = ours(**batch).loss, theirs(**batch).loss
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
    loss.backward()
    expected.backward()
    gradients = {name: to_numpy(parameter.grad) for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        np.testing.assert_allclose(to_numpy(parameter.grad), gradients[names[name]], atol=1e-5, err_msg=name)


def test_a_recipe_has_what_its_name_says():
    sizes = {name: sum(p.data.size for p in model_of(name).parameters()) for name in RECIPES}
    for name in ("pre-LN", "GeGLU"):
        assert sizes[name] == pytest.approx(sizes["BERT"], rel=1e-3)
    for name in ("local attention", "30 % hidden", "replaced tokens", "rotary and a table"):
        assert sizes[name] == sizes["BERT"]
    assert not [name for name, _ in model_of("no biases").encoder.named_parameters() if name.endswith("bias")]
    for name in ("rotary", "ALiBi", "all together"):
        assert "encoder.positions.weight" not in model_of(name).state_dict()


@pytest.mark.parametrize("name", ["pre-LN", "all together"])
def test_layers_that_leave_their_sum_alone_end_with_a_norm(name, batch):
    encoder = model_of(name).encoder
    with no_grad():
        x = encoder(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]).numpy()
    np.testing.assert_allclose((x**2).mean(axis=-1), 1, atol=1e-3)


@pytest.mark.parametrize("silent", ["attention.dense", "feed_forward.output"])
def test_pre_ln_adds_to_its_input_what_does_not_know_how_large_it_is(silent):
    """With one half silent, the other adds the same to x and to 100 x, because it reads it normalised."""
    random.manual_seed(0)
    layer = modern.PreNorm(config_of("light"), RECIPES["pre-LN"], 1)
    layer.load_state_dict(
        {name: 0 * W.numpy() for name, W in layer.named_parameters() if name.startswith(silent)}, strict=False
    )
    x = np.random.default_rng(0).standard_normal((2, 5, 128)).astype(np.float32)
    mask = np.zeros((2, 1, 1, 5))
    with no_grad():
        added, to_more = (layer(Tensor(c * x), mask).numpy() - c * x for c in (1, 100))
    assert np.abs(added).max() > 0.1
    np.testing.assert_allclose(added, to_more, atol=1e-3)


def test_geglu():
    random.manual_seed(0)
    layer = modern.GeGLU(config_of("light"), bias=False)
    x = np.random.default_rng(0).standard_normal((2, 128))
    gate = x @ layer.gate.weight.numpy()
    gelu = gate / 2 * (1 + np.vectorize(math.erf)(gate / math.sqrt(2)))
    wanted = (gelu * (x @ layer.intermediate.weight.numpy())) @ layer.output.weight.numpy()
    np.testing.assert_allclose(layer(Tensor(x, dtype="float32")).numpy(), wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("heads", "first", "last"), [(8, 1 / 2, 1 / 256), (4, 1 / 4, 1 / 256), (16, 2**-0.5, 1 / 256)]
)
def test_slopes_are_the_papers(heads, first, last):
    found = modern.slopes(heads)
    assert len(found) == heads
    assert found[0] == pytest.approx(first)
    assert found[-1] == pytest.approx(last)


@pytest.mark.parametrize(("name", "is_relative"), [("BERT", False), ("rotary", True), ("ALiBi", True)])
def test_relative_positions_do_not_notice_where_a_text_begins(name, is_relative, batch):
    encoder = model_of(name).encoder
    ids, segments = batch["input_ids"][:1, :20], batch["token_type_ids"][:1, :20]
    shift = 5

    def moved(values, filled):
        return np.concatenate([np.full((1, shift), filled), values], axis=1)

    with no_grad():
        there = encoder(ids, np.ones_like(ids), segments).numpy()
        later = encoder(moved(ids, 0), moved(np.ones_like(ids), 0), moved(segments, 0)).numpy()[:, shift:]
    assert (np.abs(there - later).max() < 1e-4) == is_relative


@pytest.mark.parametrize("name", ["rotary", "ALiBi"])
def test_rotary_knows_left_from_right_and_alibi_does_not(name):
    attention = RECIPES[name].attention(config_of("light"), True, 0)
    x = np.random.default_rng(0).standard_normal((1, 7, 128)).astype(np.float32)
    mask = np.zeros((1, 1, 1, 7))
    with no_grad():
        forward = attention(Tensor(x), mask).numpy()
        backward = attention(Tensor(x[:, ::-1].copy()), mask).numpy()[:, ::-1]
    assert (np.abs(forward - backward).max() < 1e-5) == (name == "ALiBi")


def test_every_other_layer_sees_its_neighbours_alone():
    x = np.random.default_rng(0).standard_normal((1, 12, 128)).astype(np.float32)
    other = x.copy()
    other[:, 10] += 1
    for number, reach in ((0, modern.NEAR), (1, 12)):
        random.manual_seed(0)
        attention = modern.Local(config_of("light"), True, number)
        with no_grad():
            first, second = (attention(Tensor(one), np.zeros((1, 1, 1, 12))).numpy() for one in (x, other))
        changed = np.flatnonzero(np.abs(first - second).max(axis=(0, 2)) > 1e-7)
        np.testing.assert_array_equal(changed, [i for i in range(12) if abs(i - 10) <= reach])


def test_a_replaced_token_is_a_guess_that_is_wrong(batch):
    random.manual_seed(0)
    both = Detection(config_of("light"), RECIPES["replaced tokens"], 0)
    chosen = batch["labels"] != IGNORED
    true = np.where(chosen, batch["labels"], batch["input_ids"])
    sure = np.full((chosen.sum(), config_of("light").vocab_size), -50.0)
    sure[np.arange(len(sure)), true[chosen]] = 50.0
    ids, replaced = both.replaced(batch, Tensor(sure))
    np.testing.assert_array_equal(ids, true)
    assert not replaced.any()
    ids, replaced = both.replaced(batch, Tensor(-sure))
    np.testing.assert_array_equal(replaced, chosen)
    np.testing.assert_array_equal(ids != true, chosen)
    both.loss(batch)
    (share,) = both.shares
    assert 0.9 < share <= 1  # of the chosen tokens: a new model hits none


def test_the_generator_learns_from_its_own_guesses_alone(batch):
    random.manual_seed(0)
    both = Detection(config_of("light"), RECIPES["replaced tokens"], 0)
    both.loss(batch).backward()
    alone = both.generator(**{name: batch[name] for name in batch if name != "next_sentence_label"}).mlm_loss
    gradients = {
        name: to_numpy(p.grad).copy() for name, p in both.generator.named_parameters() if p.grad is not None
    }
    both.zero_grad()
    alone.backward()
    for name, parameter in both.generator.named_parameters():
        if parameter.grad is not None:
            np.testing.assert_allclose(gradients[name], to_numpy(parameter.grad), atol=1e-6, err_msg=name)
    assert "encoder.words.weight" in gradients


def test_a_probe_trains_its_head_and_the_vector_of_mask(batch, monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 64)
    model = model_of("BERT")
    before = {name: p.numpy().copy() for name, p in model.encoder.named_parameters()}
    judge = modern.probe(model, "light", 0, 3)
    assert isinstance(judge, Probe)
    after = {name: p.numpy() for name, p in judge.named_parameters()}
    for name, values in before.items():
        now = after[f"encoder.{name}".replace("encoder.words.weight", "encoder.words.words.weight")]
        np.testing.assert_array_equal(values, now)
    assert np.abs(after["decoder.bias"]).max() > 0
    words = judge.encoder.words
    np.testing.assert_array_equal(words(np.array([[words.mask]])).numpy()[0], words.new.numpy())


def test_fine_tuning_leaves_the_model_as_it_was():
    model = model_of("all together")
    before = {name: to_numpy(values).copy() for name, values in model.state_dict().items()}
    share = modern.holder_accuracy(model, 1e-3, 16, 3, 0, 1000)
    assert 0.3 < share < 0.7
    for name, values in model.state_dict().items():
        np.testing.assert_array_equal(to_numpy(values), before[name])


@pytest.mark.parametrize("name", RECIPES)
def test_a_few_steps_of_each_recipe(name, monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 64)
    found = list(modern.train(name, "light", 0, 1e-3, 2, (0, 2)))
    assert [step for step, *_ in found] == [0, 2]
    assert isinstance(found[0][1].encoder, Encoder)
