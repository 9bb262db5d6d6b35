"""Greedy and beam search with a cache, held against searches without one; and what all models have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from translators import CONFIGS, LSTM, TRANSFORMER, make_model, one_row, plain_beam, random_batch, steps

from minigrad import Tensor, is_grad_enabled, no_grad
from minigrad.seq2seq import checkpoint
from minigrad.seq2seq.config import RecurrentConfig
from minigrad.seq2seq.data import shift_right
from minigrad.seq2seq.decoding import beam_search, greedy_search, length_divisor


@pytest.fixture(params=CONFIGS, ids=str)
def model(request):
    return make_model(CONFIGS[request.param])


def sources(batch):
    """The sentences of a batch, each alone and without padding."""
    return [ids[mask == 1] for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)]


# --- What all models have in common ----------------------------------------------------------------------


def test_word_by_word_with_the_cache_equals_all_words_at_once(model):
    batch = random_batch(model.config)
    decoder_input_ids = shift_right(batch["labels"], 2, 0)
    real = batch["labels"] != -100
    with no_grad():
        at_once = model(**batch).logits.numpy()
        memory = model.encode(batch["input_ids"], batch["attention_mask"])
        one_by_one = steps(model, memory, decoder_input_ids).numpy()
    np.testing.assert_allclose(one_by_one[real], at_once[real], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CONFIGS)
def test_float32_logits_are_near_those_of_float64(name):
    one, other = (make_model(CONFIGS[name], dtype) for dtype in ("float32", "float64"))
    batch = random_batch(one.config)
    with no_grad():
        logits, expected = one(**batch).logits, other(**batch).logits.numpy()
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_selected_rows_go_on_as_they_would_have(model):
    batch = random_batch(model.config)
    columns = shift_right(batch["labels"], 2, 0)[:, :3].T
    rows = np.array([2, 0, 2, 3])
    with no_grad():
        state = model.start(model.encode(batch["input_ids"], batch["attention_mask"]))
        _, state = model.step(state, columns[0])
        whole, _ = model.step(state, columns[1])
        some, after = model.step(state.select(rows), columns[1][rows])
        np.testing.assert_allclose(some.numpy(), whole.numpy()[rows], rtol=0, atol=1e-12)
        again, _ = model.step(after.select(np.array([1])), np.array([5]))
    alone = {k: v[:1] for k, v in one_row(batch, 0).items() if k != "labels"}
    with no_grad():
        ids = np.array([[*columns[:2, 0], 5]])
        expected = model(**alone, decoder_input_ids=ids).logits[:, -1].numpy()
    np.testing.assert_allclose(again.numpy(), expected, rtol=0, atol=1e-12)


def test_a_batch_gives_what_each_pair_alone_gives(model):
    batch = random_batch(model.config)
    logits = model(**batch).logits.numpy()
    for row in range(4):
        alone = one_row(batch, row)
        length = alone["labels"].shape[1]
        np.testing.assert_allclose(logits[row, :length], model(**alone).logits.numpy()[0], rtol=0, atol=1e-12)


def test_what_stands_in_padding_changes_nothing(model):
    batch = random_batch(model.config)
    expected = model(**batch).loss.item()
    junk = np.where(batch["attention_mask"] == 1, batch["input_ids"], 7)
    np.testing.assert_allclose(model(**{**batch, "input_ids": junk}).loss.item(), expected, rtol=1e-13)
    wider = {
        "input_ids": np.pad(batch["input_ids"], ((0, 0), (0, 3)), constant_values=5),
        "attention_mask": np.pad(batch["attention_mask"], ((0, 0), (0, 3))),
        "labels": np.pad(batch["labels"], ((0, 0), (0, 2)), constant_values=-100),
    }
    np.testing.assert_allclose(model(**wider).loss.item(), expected, rtol=1e-13)


def test_later_words_of_the_target_change_nothing_before_them(model):
    batch = random_batch(model.config)
    ids = np.random.default_rng(0).integers(4, 13, batch["labels"].shape)
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    logits = model(**inputs, decoder_input_ids=ids).logits.numpy()
    for place in range(1, ids.shape[1]):
        other = ids.copy()
        other[:, place] = (other[:, place] - 4 + 1) % 9 + 4
        changed = model(**inputs, decoder_input_ids=other).logits.numpy()
        np.testing.assert_array_equal(changed[:, :place], logits[:, :place])
        assert (np.abs(changed[:, place:] - logits[:, place:]).max(axis=(1, 2)) > 1e-3).all()


def test_every_word_of_the_source_counts(model):
    batch = one_row(random_batch(model.config), 0)
    logits = model(**batch).logits.numpy()
    for place in range(batch["input_ids"].shape[1]):
        other = batch["input_ids"].copy()
        other[0, place] = (other[0, place] + 1) % 13
        assert np.abs(model(**{**batch, "input_ids": other}).logits.numpy() - logits).max() > 1e-6


def test_labels_make_the_decoders_input(model):
    batch = random_batch(model.config)
    given = model(**batch, decoder_input_ids=shift_right(batch["labels"], 2, 0))
    np.testing.assert_array_equal(model(**batch).logits.numpy(), given.logits.numpy())


@pytest.mark.parametrize("name", CONFIGS)
def test_the_loss_is_the_mean_over_labels_which_are_smoothed_in_training_alone(name):
    model = make_model(CONFIGS[name].replace(dropout=0.0, label_smoothing=0.3))
    batch = random_batch(model.config)
    real = batch["labels"] != -100
    log_p = model(**batch).logits.log_softmax().numpy()[real]
    plain = -log_p[np.arange(real.sum()), batch["labels"][real]].mean()
    np.testing.assert_allclose(model(**batch).loss.item(), plain, rtol=1e-12)
    smoothed = 0.7 * plain - 0.3 * log_p.mean()
    np.testing.assert_allclose(model.train()(**batch).loss.item(), smoothed, rtol=1e-12)


BAD = {
    "an id outside": ({"input_ids": [[4, 13]]}, IndexError, r"input_ids: 13 at \(0, 1\) is outside 0 … 12"),
    "a negative id": ({"input_ids": [[-1, 5]]}, IndexError, "input_ids: -1 at"),
    "floats": ({"input_ids": [[4.0, 5.0]]}, TypeError, "input_ids: expected integers, got dtype float64"),
    "one axis": ({"input_ids": [4, 5]}, ValueError, r"expected shape \(batch, length\), got \(2,\)"),
    "no word": ({"input_ids": np.zeros((1, 0), int)}, ValueError, r"got \(1, 0\)"),
    "a mask of another shape": ({"attention_mask": [[1, 1, 1]]}, ValueError, r"shape \(1, 2\), got \(1, 3\)"),
    "a mask of other numbers": ({"attention_mask": [[1, 2]]}, ValueError, r".*got 2 at \(0, 1\)"),
    "padding alone": ({"attention_mask": [[0, 0]]}, ValueError, "attention_mask: row 0 has padding alone"),
    "a label outside": ({"labels": [[4, 99]]}, IndexError, r"labels: 99 at \(0, 1\) is outside"),
    "labels of another batch": ({"labels": [[4], [5]]}, ValueError, r"shape \(1, length\), got \(2, 1\)"),
    "no label that counts": ({"labels": [[-100, -100]]}, ValueError, "every label is -100"),
    "neither": ({"labels": None}, ValueError, "expected decoder_input_ids or labels, got neither"),
    "labels of another length": ({"decoder_input_ids": [[2, 4, 5]]}, ValueError, r"\(1, 2\), got \(1, 3\)"),
    "a decoder's input of another batch": (
        {"decoder_input_ids": [[2], [2]], "labels": None},
        ValueError,
        r"decoder_input_ids: expected shape \(1, length\), got \(2, 1\)",
    ),
    "a decoder's id outside": ({"decoder_input_ids": [[2, 13]]}, IndexError, "decoder_input_ids: 13 at"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("name", ["transformer", "lstm, dot"])
def test_bad_input_is_named(name, case):
    changes, error, message = BAD[case]
    inputs = {"input_ids": [[4, 5]], "attention_mask": [[1, 1]], "labels": [[6, 3]], **changes}
    if case in ("one axis", "no word"):
        inputs["attention_mask"] = None
    inputs = {name: None if values is None else np.array(values) for name, values in inputs.items()}
    with pytest.raises(error, match=message):
        make_model(CONFIGS[name])(**inputs)


def test_a_step_needs_a_word_for_each_row(model):
    with no_grad():
        state = model.start(model.encode(np.array([[4, 5], [6, 7]])))
    with pytest.raises(ValueError, match=r"last_ids: expected shape \(2,\), got \(3,\)"):
        model.step(state, np.array([2, 2, 2]))


# --- Searches --------------------------------------------------------------------------------------------


def test_greedy_search_equals_one_without_a_cache(model):
    batch = random_batch(model.config)
    found = greedy_search(model, batch["input_ids"], batch["attention_mask"], max_length=6)
    for hypothesis, source in zip(found, sources(batch), strict=True):
        ((ids, total, finished),) = plain_beam(model, source, 1, 0.0, 6)
        assert (hypothesis.ids, hypothesis.finished) == (ids, finished)
        assert hypothesis.score == hypothesis.log_probability == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize(("num_beams", "penalty"), [(1, 0.0), (1, 0.6), (3, 0.0), (3, 1.0), (4, 0.6)])
def test_beam_search_equals_one_without_a_cache_and_without_an_early_end(model, num_beams, penalty):
    batch = random_batch(model.config)
    found = beam_search(model, batch["input_ids"], batch["attention_mask"], num_beams, penalty, max_length=5)
    for hypotheses, source in zip(found, sources(batch), strict=True):
        expected = plain_beam(model, source, num_beams, penalty, 5)
        assert [(one.ids, one.finished) for one in hypotheses] == [(ids, end) for ids, _, end in expected]
        np.testing.assert_allclose([one.score for one in hypotheses], [score for _, score, _ in expected])


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_batch_gives_what_each_sentence_alone_gives(model, search):
    batch = random_batch(model.config, seed=5, batch=5)
    together = search(model, batch["input_ids"], batch["attention_mask"], max_length=8)
    for hypotheses, source in zip(together, sources(batch), strict=True):
        (alone,) = search(model, source[None], max_length=8)
        pairs = zip(np.ravel(hypotheses), np.ravel(alone), strict=True)
        for one, other in pairs:
            assert (one.ids, one.finished) == (other.ids, other.finished)
            assert one.score == pytest.approx(other.score, abs=1e-10)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_search_leaves_no_trace(model, search):
    model.train()
    search(model, np.array([[4, 5, 3]]), max_length=3)
    assert model.training
    assert all(module.training for module in model.modules())
    assert is_grad_enabled()
    assert all(parameter.grad is None for parameter in model.parameters())
    with pytest.raises(IndexError):
        search(model, np.array([[99]]), max_length=3)
    assert model.training
    model.eval()
    search(model, np.array([[4, 5, 3]]), max_length=3)
    assert not model.training


def test_a_search_runs_without_dropout():
    model = make_model(TRANSFORMER.replace(dropout=0.5))
    source = np.array([[4, 5, 6, 3]])
    still = beam_search(model, source, max_length=5)
    assert beam_search(model.train(), source, max_length=5) == still


# --- Searches of a table ---------------------------------------------------------------------------------


@dataclass
class TableState:
    """The words of N targets up to now."""

    ids: list[tuple[int, ...]]

    def select(self, rows):
        return TableState([self.ids[row] for row in rows])


class TableModel:
    """A model whose next word's probabilities are a function of the target's words alone.

    Words: 0 padding, 1 start, 2 end, then 3, 4, …
    """

    def __init__(self, words: int, probabilities) -> None:
        self.config = SimpleNamespace(pad_token_id=0, start_token_id=1, end_token_id=2)
        self.words, self.probabilities, self.training, self.steps = words, probabilities, False, 0

    def train(self, mode=True):
        self.training = mode

    def encode(self, input_ids, attention_mask=None):
        return len(input_ids)

    def start(self, memory):
        return TableState([()] * memory)

    def step(self, state, last_ids):
        self.steps += 1
        state = TableState([(*ids, int(last)) for ids, last in zip(state.ids, last_ids, strict=True)])
        rows = [self.probabilities(ids[1:]) for ids in state.ids]
        return Tensor(np.log(np.array(rows)), dtype="float64"), state


SOURCE = np.array([[1]])


def table(rows, default):
    """A TableModel: probabilities of end, 3, 4, … after the words that `rows` names; else `default`."""

    def probabilities(ids):
        given = rows.get(ids, default)
        rest = (1 - sum(given)) / 2
        return [rest, rest, *given]

    return TableModel(2 + len(default), probabilities)


def test_equal_words_and_targets_come_in_the_vocabularys_order():
    model = table({}, [0.24, 0.24, 0.24, 0.24])
    (greedy,) = greedy_search(model, SOURCE, max_length=3)
    assert greedy.ids == []  # the end token is the first of the equal ones
    model = table({(): [0.001, 0.3, 0.3, 0.3]}, [0.9, 0.03, 0.03, 0.03])
    for _ in range(3):
        (found,) = beam_search(model, SOURCE, num_beams=3, max_length=4)
        assert [one.ids for one in found] == [[3], [4], [5]]
        assert len({one.score for one in found}) == 1


def test_padding_and_start_token_are_never_written():
    model = TableModel(5, lambda ids: [0.5, 0.3, 0.05, 0.1, 0.05])
    (greedy,) = greedy_search(model, SOURCE, max_length=4)
    (found,) = beam_search(model, SOURCE, num_beams=3, max_length=4)
    assert greedy.ids == [3, 3, 3, 3]
    assert greedy.log_probability == pytest.approx(4 * math.log(0.1))  # of all words, padding among them
    assert all(set(one.ids) <= {3, 4} for one in found)


def test_the_length_penalty_is_that_of_wu_et_al():
    model = table({(): [0.4, 0.45, 0.1], (3,): [0.8, 0.1, 0.05]}, [0.3, 0.3, 0.3])
    (short_first,) = beam_search(model, SOURCE, num_beams=3, length_penalty=0.0, max_length=3)
    (long_first,) = beam_search(model, SOURCE, num_beams=3, length_penalty=1.0, max_length=3)
    assert short_first[0].ids == []
    assert long_first[0].ids == [3]
    assert long_first[0].score == pytest.approx(long_first[0].log_probability / (7 / 6))
    assert length_divisor(1, 0.6) == 1
    assert length_divisor(7, 0.5) == pytest.approx(math.sqrt(2))


def test_a_search_ends_early_and_the_bound_is_the_divisor_at_the_greatest_length():
    model = table({(): [0.6, 0.2, 0.1]}, [0.3, 0.3, 0.3])
    beam_search(model, SOURCE, num_beams=1, length_penalty=0.0, max_length=50)
    assert model.steps == 1  # log 0.6 of the finished one is above log 0.2
    model.steps = 0
    beam_search(model, SOURCE, num_beams=1, length_penalty=0.6, max_length=50)
    assert model.steps > 1  # log 0.2 / divisor(50) is above log 0.6 / divisor(1)


def test_a_search_goes_on_while_the_last_of_the_kept_hypotheses_may_still_be_passed():
    rows = {(): [0.5, 0.3, 0.15], (3,): [0.34, 0.5, 0.1], (4,): [0.1, 0.1, 0.1], (3, 3): [0.9, 0.04, 0.04]}
    model = table(rows, [0.3, 0.3, 0.3])
    (found,) = beam_search(model, SOURCE, num_beams=2, length_penalty=0.0, max_length=6)
    assert [one.ids for one in found] == [[], [3, 3]]  # 0.5 and 0.135, which passes the 0.102 of [3]


def test_what_has_no_end_is_not_finished():
    model = table({}, [0.001, 0.5, 0.4])
    (greedy,) = greedy_search(model, SOURCE, max_length=3)
    assert greedy == type(greedy)([3, 3, 3], greedy.log_probability, greedy.score, False)
    (found,) = beam_search(model, SOURCE, num_beams=2, max_length=3)
    assert [one.finished for one in found] == [False] * 2
    assert {len(one.ids) for one in found} == {3}
    assert found[0].score == pytest.approx(found[0].log_probability / length_divisor(3, 0.6))
    (found,) = beam_search(model, SOURCE, num_beams=15, max_length=3)
    ends = [one.finished for one in found]
    assert ends == sorted(ends, reverse=True)  # the finished ones first
    assert 0 < sum(ends) < 15


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"max_length": 0}, ValueError, "max_length: expected at least 1, got 0"),
        ({"max_length": 2.0}, TypeError, "max_length: expected an integer, got 2.0"),
        ({"max_length": True}, TypeError, "max_length: expected an integer, got True"),
        ({"num_beams": 0}, ValueError, "num_beams: expected at least 1, got 0"),
        ({"num_beams": "4"}, TypeError, "num_beams: expected an integer, got '4'"),
        ({"length_penalty": -0.1}, ValueError, "length_penalty: expected a number of 0 to 10, got -0.1"),
        ({"length_penalty": math.nan}, ValueError, "length_penalty: .*got nan"),
        ({"length_penalty": 1e300}, ValueError, "length_penalty: .*got 1e+300".replace("+", r"\+")),
        ({"length_penalty": "1"}, ValueError, "length_penalty: .*got '1'"),
    ],
)
def test_settings_of_a_search_are_checked(changes, error, message):
    model = make_model(LSTM)
    with pytest.raises(error, match=message):
        beam_search(model, np.array([[4, 3]]), **changes)
    if "max_length" in changes:
        with pytest.raises(error, match=message):
            greedy_search(model, np.array([[4, 3]]), **changes)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_model_that_overflows_on_the_way_says_so_without_a_warning(search):
    """NumPy warns where weights of 3e38 are multiplied, with a line of the library that helps nobody."""
    model = checkpoint.make_model(RecurrentConfig(7, hidden_size=4))
    for parameter in model.parameters():
        parameter.data[...] = 3e38
    with pytest.raises(ValueError, match="the model's logits are not all finite numbers"):
        search(model, np.array([[4, 3]]))
