"""Each variant of chapter `pretraining` changes what its name says, and nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bert_course.chapters import pretraining
from bert_course.chapters.pretraining import LENGTH, VARIANTS, model_of, stories, train
from bert_course.common.light_stories import batches
from bert_course.stored import stored
from minigrad import no_grad, ops
from minigrad.bert.data import make_rows
from minigrad.bert.story_scores import score_stories
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import draw_pairs

SAME_MODEL = {"BERT", "no NSP", "few stories", "5 % chosen", "40 % chosen"}


@pytest.fixture(scope="module")
def rows():
    source = stories()
    pairs = [source.encode(pair, LENGTH) for pair in draw_pairs(source.setting, 3, seed=4)]
    return make_rows(pairs, source.tokenizer, LENGTH)


def ask(name, rows):
    with no_grad():
        return model_of(VARIANTS[name], seed=1).eval()(**rows)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_the_same_weights_and_another_function(name, rows):
    weights, as_bert = (dict(model_of(VARIANTS[n], seed=1).named_parameters()) for n in (name, "BERT"))
    for parameter, array in as_bert.items():
        np.testing.assert_array_equal(weights[parameter].numpy(), array.numpy())
    logits, right = (ask(n, rows).prediction_logits.numpy() for n in (name, "BERT"))
    assert (name in SAME_MODEL or name == "dropout 0.1") == np.array_equal(logits, right)


def test_words_of_both_halves_may_change_places_without_positions(rows):
    """Two tokens of a segment change places: without positions their outputs do too, and no other output changes."""
    swapped = {**rows, "input_ids": rows["input_ids"].copy()}
    swapped["input_ids"][:, [1, 4]] = rows["input_ids"][:, [4, 1]]
    for name, same in (("no positions", True), ("BERT", False)):
        before, after = (ask(name, r).prediction_logits.numpy() for r in (rows, swapped))
        before[:, [1, 4]] = before[:, [4, 1]]
        assert np.allclose(before, after, atol=1e-5) == same


def test_one_segment_does_not_read_the_segments(rows):
    for name, same in (("one segment", True), ("BERT", False)):
        other = {**rows, "token_type_ids": 1 - rows["token_type_ids"]}
        before, after = (ask(name, r).prediction_logits.numpy() for r in (rows, other))
        assert np.array_equal(before, after) == same


def test_the_scores_of_each_kind_of_attention(rows, monkeypatch):
    """Seen where all of them pass: the queries and keys that reach the library's attention."""
    seen = {}
    true = ops.scaled_dot_product_attention

    def look(q, k, v, *rest):
        seen.setdefault(name, (q.numpy(), k.numpy(), v.numpy()))
        return true(q, k, v, *rest)

    monkeypatch.setattr(ops, "scaled_dot_product_attention", look)
    for name in ("BERT", "no scale", "K = V", "K = Q", "even attention"):
        ask(name, rows)
    q, k, v = seen["BERT"]
    np.testing.assert_allclose(seen["no scale"][0], q * np.sqrt(32), rtol=1e-5)  # d_k = 32
    np.testing.assert_array_equal(seen["no scale"][1], k)
    np.testing.assert_array_equal(seen["K = V"][1], v)
    np.testing.assert_array_equal(seen["K = Q"][1], q)
    assert not seen["even attention"][0].any()


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_learns(name, monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 32)
    monkeypatch.setattr(pretraining, "FEW", 32)
    before = {n: p.numpy().copy() for n, p in model_of(VARIANTS[name], 0).named_parameters()}
    ((_, model),) = list(train(VARIANTS[name], 0, 1e-3, 3, (2,)))
    still = {n for n, p in model.named_parameters() if np.array_equal(p.numpy(), before[n])}
    expected = {
        "K = V": {"attention.self.key"},
        "K = Q": {"attention.self.key"},
        "even attention": {"attention.self.key", "attention.self.query"},
        "no positions": {"position_embeddings"},
        "no NSP": {"pooler", "seq_relationship"},
    }.get(name, set())
    assert all(any(part in n for part in (*expected, "attention.self.key.bias")) for n in still), still
    assert all(any(part in n for n in still) for part in expected), still


def test_training_stops_at_its_points_and_few_stories_come_again(monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 64)
    monkeypatch.setattr(pretraining, "FEW", 64)
    losses = {}
    for name in ("BERT", "few stories", "no NSP"):
        found = list(train(VARIANTS[name], 0, 1e-3, 3, (0, 2, 3)))
        assert [step for step, _ in found] == [0, 2, 3]
        assert found[0][1] is found[-1][1]
        losses[name] = found[-1][1].cls.predictions.bias.numpy().copy()
    assert not np.array_equal(losses["BERT"], losses["few stories"])
    assert not np.array_equal(losses["BERT"], losses["no NSP"])
    few = VARIANTS["few stories"].stories(stories().setting)
    first, second = (few.pairs(LENGTH, np.random.default_rng(seed)) for seed in (0, 1))
    assert first == second


@pytest.mark.parametrize(("name", "share"), [("5 % chosen", 0.05), ("BERT", 0.15), ("40 % chosen", 0.4)])
def test_so_many_words_are_chosen_of_the_same_texts(name, share, monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 64)
    batch, again = (batches(stories(), 0, VARIANTS[name].chosen).next_batch() for _ in range(2))
    as_bert = batches(stories(), 0).next_batch()
    lengths = batch["attention_mask"].sum(axis=1)
    np.testing.assert_array_equal((batch["labels"] >= 0).sum(axis=1), np.maximum(1, np.rint(share * lengths)))
    texts = [np.where(b["labels"] >= 0, b["labels"], b["input_ids"]) for b in (batch, as_bert, again)]
    np.testing.assert_array_equal(texts[0], texts[1])
    np.testing.assert_array_equal(batch["input_ids"], again["input_ids"])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps", "point"), [("BERT", 10_000, 250), ("K = V", 3000, 500)])
def test_a_stored_run_begins_so_again(name, steps, point):
    record = json.loads(stored("stories.json").read_text())
    runs = [run for run in record["runs"] if (run["variant"], run["steps"], run["seed"]) == (name, steps, 0)]
    run = next(run for run in runs if run["rate"] == 1e-3)
    curve = dict(run["curve"])
    text = stories()
    assert record["text"] == text.fingerprint()
    scorer, pairs = Scorer(text.setting), draw_pairs(text.setting, 150, 2**20)
    for step, model in train(VARIANTS[name], 0, 1e-3, steps, (0, point)):
        scores = score_stories(model, text, pairs, scorer)
        for slot in ("all", "next"):
            assert scores[slot].nats == pytest.approx(curve[step][slot]["nats"], abs=0.02), (step, slot)
        if step == point:
            break
