"""solutions/bert.py, the whole course in one file: right, short, alone with NumPy, and able to learn."""

from __future__ import annotations

import ast
import math
import signal
import subprocess
import sys

import numpy as np
import pytest

from bert_course.check.exercise import EXERCISES
from bert_course.common.engine import as_module, course_file, library_bert, small_batch
from bert_course.common.light_stories import LENGTH, stories
from bert_course.one_file import model_of
from bert_course.parts import PARTS, by_part
from minigrad import optim, random
from minigrad.bert.config import BertConfig
from minigrad.bert.data import PretrainingData
from minigrad.bert.metrics import unigram_entropy
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.training import parameter_groups
from minigrad.stories.floors import Scorer, mlm_floor
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import draw_pairs

pytestmark = pytest.mark.numpy_only("the file is NumPy's alone")

TEXT = course_file().read_text("utf-8")
SIZES = {"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 20}


@pytest.fixture(scope="module")
def bert():
    return as_module(TEXT)


@pytest.fixture
def batch():
    """Two pairs of texts, one with padding."""
    return small_batch(np.random.default_rng(3), 31, (9, 6), 9)


def library(**changes) -> BertForPreTraining:
    """A small model whose weights are large enough that every part matters, without dropout."""
    random.manual_seed(1)
    sizes = SIZES | {"vocab_size": 31, "max_position_embeddings": 11, "initializer_range": 0.3} | changes
    return BertForPreTraining(BertConfig(**sizes)).eval()


def leaves(part):
    """The arrays or tensors of a model sorted into parts, in one order."""
    if isinstance(part, dict):
        return [
            leaf
            for name in sorted(part)
            if name not in ("h", "eps", "t", "means")
            for leaf in leaves(part[name])
        ]
    return [leaf for one in part for leaf in leaves(one)] if isinstance(part, list | tuple) else [part]


def test_it_has_350_lines_and_needs_numpy_alone():
    assert TEXT.count("\n") <= 350
    assert max(map(len, TEXT.split("\n"))) <= 120
    imported = [
        name.split(".")[0]
        for node in ast.walk(ast.parse(TEXT))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    ]
    assert {name for name in imported if name not in sys.stdlib_module_names} == {"numpy"}


def test_losses_and_gradients_are_the_librarys(bert, batch):
    theirs = library()
    ours = model_of(theirs.state_dict(), 3, theirs.config.layer_norm_eps, bert)
    out = theirs(**batch)
    out.loss.backward()
    losses = bert.losses(batch, ours)
    (losses[0] + losses[1]).backward()
    expected = [out.mlm_loss.item(), out.nsp_loss.item()]
    assert [float(loss.data) for loss in losses] == pytest.approx(expected, rel=1e-6)
    gradients = leaves(by_part({name: p.grad for name, p in theirs.named_parameters()}))
    assert len(gradients) == 62
    for our, gradient in zip(leaves(ours), gradients, strict=True):
        np.testing.assert_allclose(our.grad, gradient, atol=1e-5 * np.abs(gradient).max() + 1e-7)


def test_gradients_of_two_walks_add_up(bert):
    x = bert.Tensor([2.0, -3.0], requires_grad=True)
    for _ in range(2):
        (x * x + x).sum().backward()
    assert x.grad.tolist() == [10, -10]


@pytest.mark.oracle
def test_losses_and_gradients_are_those_of_transformers(bert, batch, torch):
    transformers = pytest.importorskip("transformers")
    theirs = library()
    config = transformers.BertConfig.from_dict(theirs.config.to_dict())
    peer = transformers.BertForPreTraining(config).eval()
    matrices = {name for name, module in peer.named_modules() if isinstance(module, torch.nn.Linear)}

    def turned(name, array):
        """PyTorch stores a Linear's matrix (out, in)."""
        return array.T if name.removesuffix(".weight") in matrices else array

    state = {
        name: torch.tensor(np.ascontiguousarray(turned(name, array)))
        for name, array in theirs.state_dict().items()
    }
    peer.load_state_dict(state, strict=False)
    peer.tie_weights()
    ours = model_of(theirs.state_dict(), 3, theirs.config.layer_norm_eps, bert)
    out = peer(**{name: torch.tensor(values) for name, values in batch.items()})
    out.loss.backward()
    mlm, nsp = bert.losses(batch, ours)
    (mlm + nsp).backward()
    assert float(mlm.data + nsp.data) == pytest.approx(out.loss.item(), abs=1e-5)
    gradients = {name: turned(name, p.grad.numpy()) for name, p in peer.named_parameters()}
    for our, gradient in zip(leaves(ours), leaves(by_part(gradients)), strict=True):
        np.testing.assert_allclose(our.grad, gradient, atol=1e-5)


def test_steps_are_those_of_the_librarys_optimiser(bert, batch):
    theirs = library()
    ours = model_of(theirs.state_dict(), 3, theirs.config.layer_norm_eps, bert)
    steps = 12
    optimizer = optim.AdamW(parameter_groups(theirs, 0.01), lr=2e-3, eps=1e-6)
    ours_losses = list(bert.train(ours, lambda: batch, steps))
    theirs_losses = []
    for step in range(steps):
        optimizer.zero_grad()
        out = theirs(**batch)
        out.loss.backward()
        optim.clip_grad_norm(theirs.parameters(), 1.0)
        for group in optimizer.groups:
            group["lr"] = 2e-3 * min(10 * step / steps, (steps - step) / (0.9 * steps))
        optimizer.step()
        theirs_losses.append((out.mlm_loss.item(), out.nsp_loss.item()))
    np.testing.assert_allclose(ours_losses, theirs_losses, rtol=1e-3)
    # the decay of 12 steps would be 1.3e-4
    gains = by_part(theirs.state_dict())["norm"][0]
    np.testing.assert_allclose(ours["norm"][0].data, gains, rtol=2e-5)
    assert theirs_losses[-1][0] < theirs_losses[0][0] - 0.5  # it was no standstill that they agree in


def test_the_error_function_is_right_to_2e_7(bert):
    x = np.linspace(-7, 7, 20_001)
    exact = np.vectorize(math.erf)(x)
    assert np.abs(bert.erf(x) - exact).max() < 2e-7
    assert np.abs(bert.erf(x.astype(np.float32)) - exact).max() < 4e-7  # and float32's own rounding
    assert bert.erf(np.array([-1e30, 1e30], np.float32)).tolist() == pytest.approx([-1, 1], abs=2e-7)


ON_ARRAYS = ["unbroadcast", "adam_step", "clip_gradients", "split_word", "pack", "make_pair"]
ON_TENSORS = [part.name for part in PARTS if part.name not in (*ON_ARRAYS, "bert", "backward", "train_step")]


@pytest.mark.parametrize("name", [*ON_ARRAYS, *ON_TENSORS])
def test_its_functions_are_right_answers_of_their_exercises(name):
    """Those on Tensors with the library's Tensor in the place of its own, and an error function to all digits."""
    assert EXERCISES[name].accepts(getattr(library_bert(), name))


def test_it_hides_as_bert_does(bert):
    rng = np.random.default_rng(0)
    read = np.array(
        [[bert.CLS, *range(10, 28), bert.SEP, *range(30, 48), bert.SEP, bert.PAD, bert.PAD]] * 3000
    )
    shown, labels = bert.mask_tokens(read, 60, rng)
    chosen = labels != -100
    assert (chosen.sum(axis=1) == 6).all()  # 15 % of 39
    assert (labels[chosen] == read[chosen]).all()
    assert (shown[~chosen] == read[~chosen]).all()
    assert not chosen[:, [0, 19, 38, 39, 40]].any()
    places = chosen.mean(axis=0)[[*range(1, 19), *range(20, 38)]]
    assert np.abs(places - 6 / 36).max() < 0.03  # every token alike: 4 standard deviations
    fates = [(shown == bert.MASK)[chosen].mean(), (shown == read)[chosen].mean()]
    assert fates == pytest.approx([0.8 + 0.1 / 60, 0.1 + 0.1 / 60], abs=0.01)


def test_half_of_its_pairs_are_neighbours_and_no_other_is(bert):
    documents = [[[f"d{d}s{i}"] for i in range(5)] for d in range(3)]
    names = [*bert.SPECIAL, *(word for document in documents for (word,) in document)]
    ids = {name: i for i, name in enumerate(names)}
    rng, shares = np.random.default_rng(0), []
    for _ in range(40):
        batch = bert.draw_batch(documents, ids, rng, B=25, L=6)
        read = np.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
        for row, label in zip(read[:, [1, 3]], batch["next_sentence_label"], strict=True):
            (d, i), (e, j) = (map(int, names[token][1:].split("s")) for token in row)
            assert (e, j) == (d, i + 1) if label == 0 else d != e
        shares.append(batch["next_sentence_label"].mean())
    assert 0.45 < np.mean(shares) < 0.55


def test_every_word_of_its_text_has_pieces(bert):
    text = "The river's İstanbul banks: opened, unopened! 河 [PAD]"
    ids = bert.vocabulary_of(text, most=2)
    assert list(ids)[:5] == bert.SPECIAL
    pieces = bert.pieces_of(text, ids)
    assert "[UNK]" not in pieces
    assert "".join(piece.removeprefix("##") for piece in pieces) == "".join(text.lower().split())
    assert bert.pieces_of("[MASK] q", ids) == ["[MASK]", "[UNK]"]  # there is no q in the text


@pytest.mark.slow
def test_it_learns_more_than_how_frequent_the_words_are_and_not_more_than_there_is(bert):
    text = stories()
    data = PretrainingData(text, text.tokenizer, 32, LENGTH, seed=0)
    model = bert.new_model(text.tokenizer.vocab_size, d=64, h=4, L_max=LENGTH)
    losses = np.array(list(bert.train(model, data.next_batch, 300)))
    pairs = draw_pairs(SETTINGS["light"], 20, seed=5)
    floor = mlm_floor(pairs, Scorer(SETTINGS["light"]))["all"].nats
    assert 0.4 < floor < losses[-20:, 0].mean() < unigram_entropy(text.tokens()) - 1.5


def run(path, *arguments, **settings):
    command = [sys.executable, str(course_file()), str(path), *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", **settings
    )


SENTENCES = [
    f"The {a} {b} the {c}."
    for a in ("cat", "dog")
    for b in ("sees", "hears")
    for c in ("bird", "fish", "cow")
]


def test_the_command_trains_and_guesses(tmp_path):
    text = tmp_path / "some.txt"
    longest = "The cat sees " + "the cow and " * 30 + "the fish."  # longer than a text of the model
    text.write_text(" ".join([*SENTENCES[1:], longest]), "utf-8")
    out, err = run(text, "3").communicate(timeout=100)
    assert err == ""
    assert out.startswith("12 sentences, ")
    assert "step 3: words" in out
    guesses = [line for line in out.split("\n") if line.startswith("    it was ")]
    assert len(guesses) == 6
    assert all(line.count("%") == 4 for line in guesses)


def test_a_text_without_sentences_is_refused_in_words(tmp_path):
    text = tmp_path / "short.txt"
    text.write_text("One sentence. And another.", "utf-8")
    process = run(text)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 1
    assert (out, err) == (
        "",
        f"{text} has 2 sentences; the model needs pairs of them, so give it at least 8\n",
    )


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_text_that_cannot_be_read_is_refused_in_words(tmp_path, content):
    text = tmp_path / "some.txt"
    if content:
        text.write_bytes(content)
    process = run(text)
    out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (1, "")
    assert err.startswith(f"{text} cannot be read as text: ")
    assert err.count("\n") == 1


def test_ctrl_c_ends_the_training_and_not_the_guesses(tmp_path):
    text = tmp_path / "some.txt"
    text.write_text(" ".join(SENTENCES), "utf-8")
    process = run(text, "100000", bufsize=1)
    seen = ""
    while "step 2" not in seen:
        seen += process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert err == ""
    assert process.returncode == 0
    assert "stopped" in out
    assert out.count("it was") == 6
