"""What `transformer` shows: a Transformer with parts changed, its short training, the picture of a decoder layer."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters import transformer as chapter
from minigrad import backend, no_grad, random
from minigrad.seq2seq import Transformer

TINY = chapter.SMALL.replace(d_model=8, nhead=2, dim_feedforward=16)


@pytest.fixture(scope="module")
def pairs():
    return chapter.pairs_of(6, seed=3)


def changed(variant: chapter.Variant, config=TINY) -> chapter.Changed:
    random.manual_seed(2)
    return chapter.Changed(config, variant).eval()


def logits_of(model: Transformer, pairs) -> np.ndarray:
    with no_grad():
        return model(**chapter.batch_of(pairs)).logits.numpy()


def test_stories_have_one_or_two_sentences_and_seeds_of_their_own():
    stop = chapter.tokenizer.token_to_id(".")
    drawn = chapter.pairs_of(20, seed=5)
    assert {sum(one == stop for one in source) for source, _ in drawn} == {1, 2}
    assert drawn == chapter.pairs_of(20, seed=5) != chapter.pairs_of(20, seed=6)


def test_the_paper_s_variant_is_the_library_s_model(pairs):
    model = changed(chapter.VARIANTS["all parts"])
    library = Transformer(model.config)
    library.load_state_dict(model.state_dict())
    batch = chapter.batch_of(pairs)
    with no_grad():
        expected = library.eval()(**batch)
        found = model(**batch)
    np.testing.assert_array_equal(found.logits.numpy(), expected.logits.numpy())
    assert found.loss.item() == expected.loss.item()


def later_word_changed(model: Transformer, pairs) -> np.ndarray:
    """How far each place's logits move when the last label of the longest target changes."""
    batch = chapter.batch_of(pairs)
    row = int((batch["labels"] != -100).sum(axis=1).argmax())
    other = {**batch, "labels": batch["labels"].copy()}
    other["labels"][row, -2] = chapter.tokenizer.token_to_id("mary")
    other["labels"][row, -1] = chapter.tokenizer.token_to_id("mary")
    with no_grad():
        one, another = (model(**given).logits.numpy()[row] for given in (batch, other))
    return np.abs(one - another).max(axis=-1)


@pytest.mark.parametrize(
    ("variant", "first_moved"),
    [(chapter.Variant(), -1), (chapter.Variant(shift=False), -2), (chapter.Variant(future=True), 0)],
    ids=["mask and shift", "no shift", "no mask"],
)
def test_what_a_place_can_see(variant, first_moved, pairs):
    moved = later_word_changed(changed(variant), pairs) > 0
    expected = np.zeros(len(moved), bool)
    expected[first_moved:] = True
    np.testing.assert_array_equal(moved, expected)


@pytest.mark.parametrize("name", [name for name in chapter.VARIANTS if "√" in name or "positions" in name])
def test_what_changes_the_embeddings_changes_the_logits(name, pairs):
    plain, other = changed(chapter.Variant()), changed(chapter.VARIANTS[name])
    other.load_state_dict(plain.state_dict())
    assert np.abs(logits_of(plain, pairs) - logits_of(other, pairs)).max() > 0.01


def test_a_table_of_its_own_has_as_many_numbers_again():
    tied, untied = (changed(chapter.Variant(tied=tied)) for tied in (True, False))
    more = sum(p.size for p in untied.parameters()) - sum(p.size for p in tied.parameters())
    assert more == TINY.vocab_size * TINY.d_model


@pytest.mark.parametrize(
    ("name", "dropout", "smoothing"),
    [("all parts", 0.1, 0.1), ("no dropout", 0.0, 0.1), ("no label smoothing", 0.1, 0.0)],
)
def test_dropout_and_smoothing(name, dropout, smoothing):
    config = changed(chapter.VARIANTS[name], chapter.REDUCED).config
    assert (config.dropout, config.label_smoothing) == (dropout, smoothing)


def test_training_tells_and_learns():
    told = []
    model = chapter.train(TINY, 30, 10, every=10, tell=lambda step, model, loss: told.append((step, loss)))
    assert [step for step, _ in told] == [10, 20, 30]
    assert told[-1][1] < told[0][1]
    assert not model.training


def test_without_warm_up_the_rate_starts_at_its_peak(monkeypatch):
    rates: dict[str, list[float]] = {}
    step = chapter.optim.Adam.step
    for name in ("all parts", "no warm-up"):
        rates[name] = []

        def note(adam, name=name):
            rates[name].append(adam.groups[0]["lr"])
            step(adam)

        monkeypatch.setattr(chapter.optim.Adam, "step", note)
        chapter.train(TINY, 6, 4, variant=chapter.VARIANTS[name])
    peak = max(rates["all parts"])
    np.testing.assert_allclose(peak, (TINY.d_model * 4) ** -0.5)
    np.testing.assert_allclose(rates["no warm-up"][:4], peak)
    np.testing.assert_allclose(rates["no warm-up"][4:], rates["all parts"][4:])


def test_scores_of_a_model_that_is_always_right(pairs):
    """A model whose logits are the labels, which the unshifted input makes easy to build."""

    class Oracle(chapter.Changed):
        def forward(self, input_ids, attention_mask=None, decoder_input_ids=None, labels=None, **others):
            output = super().forward(input_ids, attention_mask, labels=labels)
            logits = output.logits.data
            sure = 50 * np.eye(logits.shape[-1])[np.where(labels == -100, 0, labels)]
            logits[...] = backend.of(logits).xp.asarray(sure, logits.dtype)
            return output

    model = Oracle(TINY, chapter.Variant()).eval()
    assert chapter.held_out(model, pairs)[1] == 1
    assert chapter.held_out(changed(chapter.Variant()), pairs)[1] < 0.5
