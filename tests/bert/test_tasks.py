"""BERT with a head for a task, held against transformers' classes of the same names."""

from __future__ import annotations

import numpy as np
import pytest
from checkpoints import assert_same_gradients, inputs, keep, make_model, rewrite, twin
from tiny import SMALL

from minigrad import backend
from minigrad.bert.checkpoint import from_pretrained, save_pretrained
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining, BertModel, OutsideError
from minigrad.bert.tasks import (
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from minigrad.tensor import no_grad
from minigrad.training.reading import CheckpointError

KINDS = [BertForSequenceClassification, BertForTokenClassification, BertForQuestionAnswering]
LABELS = {0: "no", 1: "yes", 2: "who knows"}
DRY = SMALL.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, id2label=LABELS)
CONFIGS = {
    "odd sizes": DRY.replace(vocab_size=53, hidden_size=15, num_attention_heads=5, intermediate_size=7),
    "one layer, two classes": DRY.replace(
        num_hidden_layers=1, num_attention_heads=1, hidden_size=9, id2label={0: "LABEL_0", 1: "LABEL_1"}
    ),
    "no layer": DRY.replace(num_hidden_layers=0),
    "a number": DRY.replace(id2label={0: "LABEL_0"}),
    "seven classes": DRY.replace(type_vocab_size=3, id2label=dict(enumerate("abcdefg"))),
}
LENGTHS, LENGTH = (11, 2, 7, 3, 9), 11

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@pytest.fixture(params=CONFIGS, ids=str)
def config(request) -> BertConfig:
    return CONFIGS[request.param]


def targets(kind: type, config: BertConfig) -> dict[str, np.ndarray]:
    """What each class learns from; some of it does not count."""
    rng = np.random.default_rng(4)
    if kind is BertForSequenceClassification:
        if config.num_labels == 1:
            return {"labels": rng.standard_normal(5)}
        return {"labels": np.array([0, 1, -100, config.num_labels - 1, 1])}
    if kind is BertForTokenClassification:
        labels = rng.integers(0, config.num_labels, (5, LENGTH))
        return {"labels": np.where(rng.random((5, LENGTH)) < 0.5, labels, -100)}
    return {
        "start_positions": np.array([3, 0, LENGTH, 2, -4]),  # two are outside of the input
        "end_positions": np.array([5, 1, 400, LENGTH, 8]),
    }


def outputs(output) -> dict:
    """The logits that an output of either library has."""
    names = ("logits", "start_logits", "end_logits")
    return {name: getattr(output, name) for name in names if hasattr(output, name)}


# --- Against transformers --------------------------------------------------------------------------------


@pytest.mark.oracle
@each_kind
def test_logits_loss_and_every_gradient_equal_transformers(kind, config):
    torch = pytest.importorskip("torch")
    if kind is not BertForSequenceClassification and config.num_labels == 1:
        pytest.skip("of texts alone")
    if kind is BertForQuestionAnswering and config.num_labels != 2:
        config = config.replace(id2label={0: "LABEL_0", 1: "LABEL_1"})  # transformers makes as many scores
    model = make_model(config, kind).astype("float64")
    batch = {**inputs(config, LENGTHS), **targets(kind, config)}
    theirs = twin(model, "float64")
    mine, expected = model(**batch), theirs(**{name: torch.tensor(value) for name, value in batch.items()})
    found = outputs(mine)
    assert found.keys() == outputs(expected).keys()
    for name, tensor in outputs(expected).items():
        np.testing.assert_allclose(found[name].numpy(), tensor.detach().numpy(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(mine.loss.item(), expected.loss.item(), rtol=1e-12)
    mine.loss.backward()
    expected.loss.backward()
    assert_same_gradients(model, theirs, drop_padding=True)


@pytest.mark.oracle
@each_kind
def test_there_and_back_through_transformers(tmp_path, kind):
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = (
        DRY if kind is not BertForQuestionAnswering else DRY.replace(id2label={0: "LABEL_0", 1: "LABEL_1"})
    )
    model = make_model(config, kind)
    save_pretrained(model, tmp_path / "mine")
    theirs, report = getattr(transformers, kind.__name__).from_pretrained(
        tmp_path / "mine", output_loading_info=True
    )
    assert not any(report.values())
    assert theirs.config.id2label == config.id2label
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = from_pretrained(tmp_path / "theirs", kind)
    assert loaded.notes == []
    assert loaded.model.config == config
    assert loaded.model.state_dict().keys() == model.state_dict().keys()
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(
            backend.to_numpy(loaded.model.state_dict()[name]), backend.to_numpy(array), err_msg=name
        )


# --- Without it ------------------------------------------------------------------------------------------


@each_kind
def test_what_does_not_count_changes_no_loss(kind):
    model = make_model(DRY, kind)
    batch = {**inputs(DRY, LENGTHS), **targets(kind, DRY)}
    with no_grad():
        loss = model(**batch).loss.item()
        assert model(**inputs(DRY, LENGTHS)).loss is None
        if kind is BertForQuestionAnswering:
            rows = [model(**{n: v[[i]] for n, v in batch.items()}) for i in (0, 1)]  # all in the input
            both = model(**{name: values[:2] for name, values in batch.items()}).loss.item()
            assert both == pytest.approx(sum(row.loss.item() for row in rows) / 2, rel=1e-5)
        else:
            counted = batch["labels"] != -100
            scores = model(**inputs(DRY, LENGTHS)).logits.numpy()[counted].astype(np.float64)
            picked = scores[np.arange(len(scores)), batch["labels"][counted]]
            assert loss == pytest.approx((np.log(np.exp(scores).sum(-1)) - picked).mean(), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS[:2], ids=lambda kind: kind.__name__)
def test_dropout_stands_before_the_classifier(kind):
    """With the encoder's dropout at 0, the logits of two passes differ by this one alone."""
    model = make_model(DRY, kind)
    ids = np.full((1, 5), 7)
    assert (model(ids).logits.numpy() == model(ids).logits.numpy()).all()
    model.train()
    model.dropout.p = 0.5
    assert (model(ids).logits.numpy() != model(ids).logits.numpy()).any()
    assert kind(SMALL).dropout.p == SMALL.hidden_dropout_prob


def test_how_many_classes():
    assert BertForSequenceClassification(SMALL).classifier.weight.shape == (12, 2)
    assert BertForSequenceClassification(DRY).classifier.weight.shape == (12, 3)
    model = BertForTokenClassification(DRY, num_labels=4)
    assert model.classifier.weight.shape == (12, 4)
    assert model.config.id2label == {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2", 3: "LABEL_3"}
    assert BertForTokenClassification(DRY, num_labels=3).config.id2label == LABELS
    with pytest.raises(ValueError, match="num_labels must be at least 1, got 0"):
        BertForSequenceClassification(DRY, num_labels=0)
    with pytest.raises(ValueError, match="num_labels must be at least 2, got 1"):
        BertForTokenClassification(DRY, num_labels=1)
    with pytest.raises(ValueError, match="num_labels must be at least 2, got 1"):
        BertForTokenClassification(DRY.replace(id2label={0: "x"}))


def test_one_score_is_a_number():
    model = make_model(DRY.replace(id2label={0: "LABEL_0"}), BertForSequenceClassification)
    batch, labels = (
        inputs(DRY, LENGTHS),
        np.array([-100, 0.5, 2, 3, 4e3]),
    )  # a number, not a mark to ignore it
    with no_grad():
        output = model(**batch, labels=labels)
        errors = output.logits.numpy()[:, 0] - labels
        assert output.loss.item() == pytest.approx((errors**2).mean(), rel=1e-5)
        assert model(**batch, labels=labels.astype(np.int64)).loss.dtype == np.float32
        for wrong, message in (
            (np.zeros((5, 1)), r"expected numbers of shape \(5,\), got float64 of \(5, 1\)"),
            (np.array(list("abcde")), r"expected numbers of shape \(5,\), got <U1 of \(5,\)"),
            (np.array([0, 1, np.nan, 3, np.inf]), "labels: nan at 2 is not finite"),
        ):
            with pytest.raises(ValueError, match=message):
                model(**batch, labels=wrong)


@pytest.mark.parametrize(
    ("kind", "changes", "error", "message"),
    [
        (KINDS[0], {"labels": np.full(5, 3)}, OutsideError, r"labels: 3 at \(0,\) is outside 0 … 2"),
        (KINDS[0], {"labels": np.zeros((5, 1), int)}, ValueError, r"expected shape \(5,\), got \(5, 1\)"),
        (KINDS[0], {"labels": np.full(5, -100)}, ValueError, "no label counts, all 5 are ignore_index=-100"),
        (KINDS[0], {"labels": np.zeros(5)}, TypeError, "labels: expected integers, got dtype float64"),
        (KINDS[1], {"labels": np.zeros(5, int)}, ValueError, r"labels: expected shape \(5, 11\), got \(5,\)"),
        (KINDS[1], {"labels": np.full((5, 11), -1)}, OutsideError, r"-1 at \(0, 0\) is outside 0 … 2"),
        (KINDS[2], {"end_positions": np.zeros(4, int)}, ValueError, r"end_positions: expected shape \(5,\)"),
        (KINDS[2], {"start_positions": np.full(5, 11)}, ValueError, "no label counts, all 5 are"),
    ],
)
def test_bad_targets_are_named(kind, changes, error, message):
    model = make_model(DRY, kind)
    with pytest.raises(error, match=message):
        model(**inputs(DRY, LENGTHS), **{**targets(kind, DRY), **changes})


# --- Checkpoints -----------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("source", [BertForPreTraining, BertModel], ids=lambda kind: kind.__name__)
def test_a_pre_trained_model_gives_its_encoder(tmp_path, kind, source):
    """The heads of pre-training are left out, a new one is drawn, and the notes say so."""
    trained = make_model(SMALL, source)
    save_pretrained(trained, tmp_path)
    loaded = from_pretrained(tmp_path, kind, LABELS)
    head = "qa_outputs" if kind is BertForQuestionAnswering else "classifier"
    assert loaded.notes[0] == f"not in the checkpoint, left as initialised: {head}.weight, {head}.bias"
    left = [note for note in loaded.notes if note.startswith("in the checkpoint, not used: ")]
    pooler = kind is not BertForSequenceClassification
    assert len(left) == (source is BertForPreTraining or pooler)
    assert all(("pooler.dense.weight" in note) == pooler for note in left)
    assert all(("cls." in note) == (source is BertForPreTraining) for note in left)
    assert loaded.model.config == SMALL.replace(id2label=LABELS)
    body = trained.bert if source is BertForPreTraining else trained
    for name, array in loaded.model.bert.state_dict().items():
        np.testing.assert_array_equal(backend.to_numpy(array), backend.to_numpy(body.state_dict()[name]))
    assert backend.to_numpy(getattr(loaded.model, head).weight.data).std() < 2 * SMALL.initializer_range


def test_a_classifier_of_other_classes_is_left_out(tmp_path):
    model = make_model(DRY, BertForSequenceClassification)
    save_pretrained(model, tmp_path)
    assert from_pretrained(tmp_path, BertForSequenceClassification, LABELS).notes == []
    for others in ({0: "ham", 1: "spam"}, {0: "ham", 1: "spam", 2: "neither"}):
        loaded = from_pretrained(tmp_path, BertForSequenceClassification, others)
        assert loaded.notes == [
            "left out: the checkpoint's classifier, whose classes are others",
            "not in the checkpoint, left as initialised: classifier.weight, classifier.bias",
        ]
        assert loaded.model.config.id2label == others


def test_weights_that_do_not_fit_the_classes(tmp_path):
    model = make_model(DRY, BertForSequenceClassification)
    save_pretrained(model, tmp_path)
    (tmp_path / "SHA256SUMS").unlink()
    rewrite(tmp_path, lambda state: {**state, "classifier.weight": np.zeros((4, 12), np.float32)})
    with pytest.raises(CheckpointError, match=r"classifier.weight is \(4, 12\), expected \(3, 12\)"):
        from_pretrained(tmp_path, BertForSequenceClassification)
    rewrite(tmp_path, keep(r"bert\.pooler"))
    with pytest.raises(CheckpointError, match=r"weights are missing: bert\.embeddings"):
        from_pretrained(tmp_path, BertForSequenceClassification)
