"""The training loop: that it learns, that it counts right, and that it stops when it has stopped being finite."""

from __future__ import annotations

import dataclasses
import gc
import math
import tracemalloc

import numpy as np
import pytest
import tiny
from tiny import before_step, changed, checkpoints, contents, quietly, table

from minigrad import backend, optim, random
from minigrad.bert import pretraining as module
from minigrad.bert.data import PretrainingData, encode_documents, held_out_batches, make_batch
from minigrad.bert.metrics import Tally, evaluate, unigram_entropy
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.pretraining import prepare
from minigrad.bert.training import parameter_groups
from minigrad.stories.stories import STORIES, Stories
from minigrad.text.corpus import Corpus, CorpusError
from minigrad.text.sentences import SentencePair
from minigrad.training.reading import CheckpointError
from minigrad.training.run import DivergenceError

FIGURES = ["step", "loss", "mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy"]


# --- Settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        (changed(max_length=17), {}, "max_length is 17, but the model has 16 positions"),
        (tiny.ARGUMENTS, {"config": tiny.CONFIG.replace(vocab_size=68)}, "the vocabulary has 69 pieces, the"),
        (tiny.ARGUMENTS, {"config": tiny.CONFIG.replace(type_vocab_size=1)}, "type_vocab_size must be at"),
    ],
)
def test_settings_that_do_not_fit_together(tmp_path, arguments, changes, message):
    with pytest.raises(ValueError, match=message):
        tiny.pretraining(tmp_path, arguments, **changes)


def test_adamw_has_the_released_settings(tmp_path):
    """`optimization.py` of the released code: ε is 1e-6, where PyTorch's default is 1e-8."""
    run = tiny.pretraining(tmp_path, changed(learning_rate=3e-3, weight_decay=0.07, warmup_steps=0))
    for group, decay in zip(run.optimizer.groups, (0.07, 0.0), strict=True):
        assert {name: group[name] for name in ("lr", "betas", "eps", "weight_decay")} == {
            "lr": 3e-3,
            "betas": (0.9, 0.999),
            "eps": 1e-6,
            "weight_decay": decay,
        }


def test_biases_and_layer_norms_are_not_decayed():
    model = BertForPreTraining(tiny.CONFIG)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed, plain = parameter_groups(model, 0.03)
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.03, 0.0)
    layer = "bert.encoder.layer.0"
    assert {names[id(p)] for p in decayed["params"]} == {
        "bert.embeddings.word_embeddings.weight",
        "bert.embeddings.position_embeddings.weight",
        "bert.embeddings.token_type_embeddings.weight",
        f"{layer}.attention.self.query.weight",
        f"{layer}.attention.self.key.weight",
        f"{layer}.attention.self.value.weight",
        f"{layer}.attention.output.dense.weight",
        f"{layer}.intermediate.dense.weight",
        f"{layer}.output.dense.weight",
        "bert.pooler.dense.weight",
        "cls.predictions.transform.dense.weight",
        "cls.seq_relationship.weight",
    }
    both = [names[id(p)] for group in (decayed, plain) for p in group["params"]]
    assert sorted(both) == sorted(names.values())
    assert all(name.endswith(".bias") or ".LayerNorm." in name for name in both[len(decayed["params"]) :])


# --- Learning and counting -------------------------------------------------------------------------------


def test_it_learns_more_than_how_frequent_the_words_are(tmp_path):
    """Documents of one topic each: who reads the context knows the topic, whose words are one in eight."""
    arguments = changed(
        steps=200, batch_size=16, warmup_steps=30, log_every=50, eval_every=200, save_every=200
    )
    data = PretrainingData(tiny.documents(40, seed=9), tiny.tokenizer(), 32, 16, seed=9)
    run = tiny.pretraining(tmp_path, arguments, held_out=[data.next_batch() for _ in range(4)])
    knowing_nothing = evaluate(run.model, run.held_out)
    assert knowing_nothing["mlm_loss"] == pytest.approx(math.log(tiny.CONFIG.vocab_size), abs=0.2)
    assert knowing_nothing["nsp_loss"] == pytest.approx(math.log(2), abs=0.1)
    lines = []
    figures = run.run(lines.append)
    entropy = unigram_entropy(t for document in tiny.documents() for s in document for t in s)
    assert figures["mlm_loss"] < entropy - 0.3
    assert figures["nsp_accuracy"] > 0.6
    first, *_, last = table(tmp_path / "metrics.csv")
    assert float(last["loss"]) < float(first["loss"]) - 0.5


def test_the_tables(tmp_path):
    run = tiny.pretraining(tmp_path, changed(steps=9, log_every=2, eval_every=4, warmup_steps=3))
    quietly(run)
    rows = table(tmp_path / "metrics.csv")
    assert list(rows[0]) == [*FIGURES, "learning_rate", "grad_norm", "tokens_per_second"]
    assert [int(row["step"]) for row in rows] == [2, 4, 6, 8, 9]
    for row in rows:
        values = {name: float(value) for name, value in row.items()}
        assert values["loss"] == pytest.approx(values["mlm_loss"] + values["nsp_loss"], rel=1e-4)
        assert 0 <= values["mlm_accuracy"] <= 1
        assert 0 <= values["nsp_accuracy"] <= 1
        assert values["grad_norm"] > 0
        assert values["tokens_per_second"] > 0
    # the rate of the step itself: up to the peak in 3 steps from 0, down to 0 in 6
    assert [float(row["learning_rate"]) for row in rows] == pytest.approx(
        [1e-2 / 3, 1e-2, 1e-2 * 4 / 6, 1e-2 * 2 / 6, 1e-2 / 6], rel=1e-5
    )
    held_out = table(tmp_path / "evaluation.csv")
    assert list(held_out[0])[:6] == FIGURES
    assert [int(row["step"]) for row in held_out] == [4, 8, 9]
    assert float(held_out[-1]["mlm_loss"]) == pytest.approx(run.evaluation["mlm_loss"], rel=1e-5)


def test_training_does_not_hang_on_how_often_one_looks(tmp_path):
    often = tiny.pretraining(tmp_path / "often", changed(eval_every=1, log_every=1))
    seldom = tiny.pretraining(tmp_path / "seldom", changed(eval_every=10, log_every=10), held_out=[])
    for run in (often, seldom):
        random.manual_seed(run.arguments.seed)
        quietly(run)
    names = [tmp_path / name / "checkpoint-000010" / "model.safetensors" for name in ("often", "seldom")]
    assert names[0].read_bytes() == names[1].read_bytes()


def whole_batch(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Pairs of one length, so that each row has as many chosen tokens as any other."""
    rng = np.random.default_rng(seed)
    words = rng.integers(5, 69, (rows, 13)).tolist()
    pairs = [SentencePair(row[:6], row[6:], number % 2) for number, row in enumerate(words)]
    return make_batch(pairs, tiny.tokenizer(), 16, rng)


def part(batch: dict[str, np.ndarray], start: int, end: int) -> dict[str, np.ndarray]:
    return {name: values[start:end] for name, values in batch.items()}


def test_gradient_accumulation_is_one_larger_batch(tmp_path):
    """Exactly so where each micro-batch has as many chosen tokens, for a loss is the mean over these."""
    config = tiny.CONFIG.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    weights, norms = [], []
    for micro_batches in (1, 4):
        arguments = changed(
            steps=3, warmup_steps=0, batch_size=8 // micro_batches, gradient_accumulation_steps=micro_batches
        )
        run = tiny.pretraining(tmp_path / str(micro_batches), arguments, config=config, held_out=[])
        size = arguments.batch_size
        queue = [part(whole_batch(8, step), i, i + size) for step in range(3) for i in range(0, 8, size)]
        run.data.next_batch = lambda queue=queue: queue.pop(0)
        tally = Tally()
        norms.append([float(run.train_step(tally)[0]) for _ in range(3)])
        weights.append({name: backend.to_numpy(array) for name, array in run.model.state_dict().items()})
        assert not queue
        assert tally.pairs == 24
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    for name, expected in weights[0].items():
        # Adam divides by the gradient's size, so where that is rounding noise alone a weight may differ by a step
        near = np.abs(weights[1][name] - expected) < 1e-4
        assert near.mean() > 0.99 or name.endswith("key.bias"), name


def test_gradients_are_clipped_together(tmp_path):
    run = tiny.pretraining(tmp_path, changed(max_grad_norm=1e-3))
    norm, _ = run.train_step(Tally())
    after = math.sqrt(sum(float((backend.to_numpy(p.grad) ** 2).sum()) for p in run.model.parameters()))
    assert norm > 1e-2
    assert after == pytest.approx(1e-3, rel=1e-2)


def test_the_seed_fixes_the_run(tmp_path):
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        random.manual_seed(99)
        quietly(tiny.pretraining(tmp_path / name, changed(seed=seed, steps=4)))
        weights.append((tmp_path / name / "checkpoint-000004" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def test_the_speed_leaves_out_what_is_not_training(tmp_path, monkeypatch):
    """Each step takes a second, each evaluation and save an hour."""
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    run = tiny.pretraining(tmp_path, changed(log_every=3, eval_every=2, save_every=2))

    def wait(name, seconds):
        true = getattr(run, name)

        def function(*args):
            clock[0] += seconds
            return true(*args)

        return function

    run.train_step = wait("train_step", 1)
    run.save = wait("save", 3600)
    figures = evaluate(run.model, run.held_out)

    def slow_evaluate(*_):
        clock[0] += 3600
        return figures

    monkeypatch.setattr(module, "evaluate", slow_evaluate)
    quietly(run)
    for row in table(tmp_path / "metrics.csv"):
        assert 20 < float(row["tokens_per_second"]) <= 4 * 16


# --- A loss that is not finite ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "kept"), [(3, "no checkpoint was saved before it"), (7, "the checkpoint of step 4 is kept")]
)
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, at, kept):
    run = tiny.pretraining(tmp_path)

    def poison():
        run.model.cls.seq_relationship.bias.data[0] = math.nan

    before_step(run, at, poison)
    with pytest.raises(
        DivergenceError, match=f"the loss is nan in step {at}; {kept}. Try a lower learning rate"
    ):
        quietly(run)
    assert checkpoints(tmp_path) == (["checkpoint-000004"] if at > 4 else [])
    resumed = tiny.pretraining(tmp_path, resume=True)
    assert resumed.step == (4 if at > 4 else 0)
    quietly(resumed)
    assert math.isfinite(resumed.evaluation["loss"])


@pytest.mark.parametrize(
    ("every", "stops_at"), [({"log_every": 2}, 4), ({"save_every": 5}, 5), ({"eval_every": 6}, 6)]
)
def test_whether_a_run_is_finite_is_looked_at_before_it_matters(tmp_path, every, stops_at):
    """Before a row is written, a checkpoint saved, or the model evaluated, whichever comes first."""
    rarely = {"log_every": 100, "save_every": 100, "eval_every": 100}
    run = tiny.pretraining(tmp_path, changed(**{**rarely, **every}))

    def poison():
        run.model.cls.seq_relationship.bias.data[0] = math.nan

    before_step(run, 3, poison)
    with pytest.raises(DivergenceError, match="the loss is nan in step 3; no checkpoint was saved before it"):
        quietly(run)
    assert run.step == stops_at
    assert checkpoints(tmp_path) == []
    assert not (tmp_path / "evaluation.csv").exists()


def test_a_step_keeps_nothing_that_grows(tmp_path):
    if backend.default().name != "numpy":
        pytest.skip("tracemalloc sees NumPy's arrays only")
    run = tiny.pretraining(tmp_path, dataclasses.replace(tiny.ARGUMENTS, batch_size=32))
    kept = []
    tracemalloc.start()
    for _ in range(8):
        run.train_step(Tally())
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    activation = 32 * 16 * 16 * 4  # bytes of (B, T, H) in float32; small objects come and go
    assert (kept[-1] - kept[3]) / 4 < activation / 4


def test_gradients_that_are_not_finite_stop_the_run_before_the_next_checkpoint(tmp_path, monkeypatch):
    run = tiny.pretraining(tmp_path)
    true = optim.clip_grad_norm

    def clip(parameters, max_norm):
        parameters = list(parameters)
        if run.step == 6:
            parameters[0].grad[0, 0] = math.inf
        return true(parameters, max_norm)

    monkeypatch.setattr(optim, "clip_grad_norm", clip)
    with pytest.raises(
        DivergenceError, match=r"the norm of the gradients is inf in step 7; the checkpoint of step 4"
    ):
        quietly(run)
    assert run.step == 8  # the step at which it was logged, and would have been saved
    assert checkpoints(tmp_path) == ["checkpoint-000004"]


# --- Precision -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_run_with_16_bit_products_learns_about_as_much(tmp_path, precision):
    losses = {}
    for each in ("float32", precision):
        run = tiny.pretraining(tmp_path / each, changed(steps=40, precision=each))
        quietly(run)
        losses[each] = run.evaluation["mlm_loss"]
        assert all(p.data.dtype == np.float32 for p in run.model.parameters())
        assert backend.matmul_precision() == "float32"
    assert losses[precision] != losses["float32"]
    assert losses[precision] == pytest.approx(losses["float32"], rel=0.02)
    first = float(table(tmp_path / precision / "evaluation.csv")[0]["mlm_loss"])
    assert losses[precision] < 0.97 * first


def test_the_evaluation_of_a_run_with_16_bit_products_is_in_float32(tmp_path):
    run = tiny.pretraining(tmp_path, changed(precision="bfloat16"))
    quietly(run)
    assert run.evaluation == module.evaluate(run.model, run.held_out)


def overflowing(run, steps: set[int]) -> None:
    """Let the scaled loss of these steps be too large for a float."""
    true = run.scaler.scale

    def scale(loss):
        return true(loss) * (1e38 if run.step + 1 in steps else 1)

    run.scaler.scale = scale


def test_steps_left_out_by_loss_scaling_are_resumed_bit_for_bit(tmp_path):
    arguments = changed(precision="float16", gradient_accumulation_steps=2)
    whole = tiny.pretraining(tmp_path / "whole", arguments)
    overflowing(whole, {1, 3})
    quietly(whole)
    assert whole.optimizer.steps == 8
    assert whole.scaler.get_scale() == 2.0**14

    part = tiny.pretraining(tmp_path / "part", arguments)
    overflowing(part, {1, 3})
    before_step(part, 6, lambda: 1 / 0)  # after the checkpoint of step 4
    with pytest.raises(ZeroDivisionError):
        quietly(part)
    resumed = tiny.pretraining(tmp_path / "part", arguments, resume=True)
    assert (resumed.step, resumed.optimizer.steps) == (4, 2)
    quietly(resumed)
    last = "checkpoint-000010"
    assert contents(tmp_path / "part" / last) == contents(tmp_path / "whole" / last)
    rows = [table(tmp_path / name / "metrics.csv") for name in ("part", "whole")]
    assert [row["learning_rate"] for row in rows[0]] == [row["learning_rate"] for row in rows[1]]


def test_a_step_left_out_changes_nothing(tmp_path):
    run = tiny.pretraining(tmp_path, changed(precision="float16", warmup_steps=0))
    overflowing(run, {1})
    before = run.model.state_dict()
    before = {name: backend.to_numpy(array).copy() for name, array in before.items()}
    norm, _ = run.train_step(Tally())
    assert not math.isfinite(norm)
    for name, array in run.model.state_dict().items():
        np.testing.assert_array_equal(backend.to_numpy(array), before[name])
    norm, _ = run.train_step(Tally())
    assert math.isfinite(norm)


def test_gradients_that_no_scale_saves_stop_the_run(tmp_path):
    run = tiny.pretraining(tmp_path, changed(steps=40, precision="float16"))
    overflowing(run, set(range(6, 41)))
    with pytest.raises(
        DivergenceError, match=r"the norm of the gradients is (inf|nan) in step 22; the checkpoint"
    ):
        quietly(run)


# --- From raw text ---------------------------------------------------------------------------------------


def test_a_run_from_a_text_that_is_read_and_a_vocabulary_that_is_there(tmp_path, monkeypatch, capfd):
    """Nothing is learned or said then; what comes out is the run of the parts."""
    monkeypatch.setattr(module, "train_wordpiece", None)
    corpus = Corpus(tiny.texts(20), "topics")
    tokenizer, settings = tiny.tokenizer(), tiny.ARGUMENTS
    with prepare(corpus, tiny.CONFIG, settings, tmp_path / "a", tokenizer=tokenizer, held_out=0.2) as run:
        assert run.tokenizer is tokenizer
        run.run([].append)
    assert capfd.readouterr() == ("", "")
    train, rest = corpus.split(0.2, settings.seed)
    held_out = held_out_batches(encode_documents(rest.documents, tokenizer), tokenizer, 4, 16, settings.seed)
    documents = encode_documents(train.documents, tokenizer)
    same = module.Pretraining(
        tiny.CONFIG, documents, tokenizer, held_out, tmp_path / "b", settings, train.fingerprint(), False, 0.2
    )
    quietly(same)
    last = "checkpoint-000010"
    assert contents(tmp_path / "a" / last) == contents(tmp_path / "b" / last)
    again = prepare(
        corpus, tiny.CONFIG, settings, tmp_path / "a", tokenizer=tokenizer, held_out=0.2, resume=True
    )
    assert again.step == 10


def test_what_cannot_be_prepared_leaves_nothing(tmp_path):
    with pytest.raises(CorpusError, match="there is no corpus"):
        prepare(tmp_path / "nowhere", tiny.CONFIG, tiny.ARGUMENTS, tmp_path / "run")
    with pytest.raises(ValueError, match="the vocabulary has 69 pieces, the model only 68"):
        prepare(
            Corpus(tiny.texts(), "topics"),
            tiny.CONFIG.replace(vocab_size=68),
            tiny.ARGUMENTS,
            tmp_path / "run",
            tokenizer=tiny.tokenizer(),
        )
    assert list(tmp_path.iterdir()) == []


# --- From the grammar ------------------------------------------------------------------------------------


def test_a_run_on_stories_goes_on_as_it_would_have(tmp_path, monkeypatch):
    """Fresh stories in each epoch: also after a stop, and with one piece a word."""
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 20)
    config = tiny.CONFIG.replace(vocab_size=9, max_position_embeddings=56)
    settings = changed(steps=6, max_length=56, save_every=3)
    lines: list[str] = []
    with prepare("stories", config, settings, tmp_path / "whole", say=lines.append) as run:
        run.run([].append)
    stories = Stories(STORIES["stories"])
    assert run.tokenizer.vocab == stories.tokenizer.vocab
    assert run.model.config.vocab_size == stories.tokenizer.vocab_size
    assert lines == [
        "fresh 'light' stories in each epoch, 138 pieces: the special tokens, and a piece for each word"
    ]
    assert 3 < run.unigram_entropy < math.log(stories.tokenizer.vocab_size)
    with prepare("stories", config, settings, tmp_path / "run") as run:
        for _ in range(3):
            run.train_step(run.tally)
        run.save()
    with prepare("stories", config, settings, tmp_path / "run", resume=True) as run:
        assert run.step == 3
        run.run([].append)
    last = "checkpoint-000006"
    assert contents(tmp_path / "whole" / last) == contents(tmp_path / "run" / last)
    with pytest.raises(CheckpointError, match=r"these differ: .*the text \(fingerprint"):
        prepare("varied-stories", config, settings, tmp_path / "run", resume=True)
