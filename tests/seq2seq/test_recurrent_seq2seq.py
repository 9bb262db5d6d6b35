"""Recurrent encoder and decoder, held against the same written with torch.nn.LSTM, GRU and RNN."""

from __future__ import annotations

import numpy as np
import pytest
from translators import LSTM, make_model, random_batch

from minigrad import backend
from minigrad.seq2seq.config import RecurrentConfig
from minigrad.seq2seq.recurrent import RecurrentSeq2Seq

ODD_CONFIGS = {
    "lstm": LSTM,
    "lstm, two layers, both directions": LSTM.replace(num_layers=2, bidirectional=True, hidden_size=5),
    "lstm, dot": LSTM.replace(attention="dot", vocab_size=17),
    "lstm, general, both directions": LSTM.replace(attention="general", bidirectional=True),
    "gru, additive, three layers": LSTM.replace(cell="gru", attention="additive", num_layers=3),
    "gru, both directions": LSTM.replace(cell="gru", bidirectional=True),
    "rnn, general": LSTM.replace(cell="rnn", attention="general", hidden_size=3),
}


@pytest.fixture(params=ODD_CONFIGS, ids=str)
def config(request) -> RecurrentConfig:
    return ODD_CONFIGS[request.param]


def transposed(parameter):
    """PyTorch stores a weight as (out, in)."""
    return parameter.T if parameter.ndim == 2 else parameter


class Twin:
    """The same model in PyTorch, with the same weights under the same names."""

    def __init__(self, model: RecurrentSeq2Seq, torch) -> None:
        self.torch, self.config = torch, model.config
        self.parameters = {
            name: torch.tensor(parameter.numpy(), requires_grad=True)
            for name, parameter in model.named_parameters()
        }
        kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[self.config.cell]
        size, layers = self.config.hidden_size, self.config.num_layers
        self.networks = {
            "encoder": kind(size, size, layers, batch_first=True, bidirectional=self.config.bidirectional),
            "decoder": kind(size, size, layers, batch_first=True),
        }
        for part, network in self.networks.items():
            network.double()
            names = dict(network.named_parameters())
            own = {n for n in self.parameters if n.startswith(f"{part}.network.")}
            assert own == {f"{part}.network.{name}" for name in names}
            with torch.no_grad():
                for name, parameter in names.items():
                    parameter.copy_(transposed(self.parameters.pop(f"{part}.network.{name}")))

    def logits(self, batch):
        torch, p = self.torch, self.parameters
        lengths = torch.tensor(batch["attention_mask"].sum(axis=1))
        words = p["encoder.words.weight"][torch.tensor(batch["input_ids"])]
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            words, lengths, batch_first=True, enforce_sorted=False
        )
        outputs, last = self.networks["encoder"](packed)
        states, _ = torch.nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
        last = last if isinstance(last, tuple) else (last,)
        if self.config.bidirectional:
            states = self.join(0, states)
            layers, (batch_size, size) = self.config.num_layers, last[0].shape[1:]
            last = tuple(
                self.join(
                    i,
                    part.view(layers, 2, batch_size, size)
                    .permute(0, 2, 1, 3)
                    .reshape(layers, batch_size, 2 * size),
                )
                for i, part in enumerate(last)
            )
        ids = np.where(batch["labels"] == -100, 0, batch["labels"])
        ids = np.concatenate([np.full((len(ids), 1), 2), ids[:, :-1]], axis=1)
        first = last if len(last) == 2 else last[0]
        h, _ = self.networks["decoder"](p["decoder.words.weight"][torch.tensor(ids)], first)
        if self.config.attention != "none":
            scores = self.scores(h, states)
            scores = scores.masked_fill(torch.tensor(batch["attention_mask"] == 0)[:, None], -torch.inf)
            context = scores.softmax(-1) @ states
            h = torch.tanh(torch.cat([context, h], dim=-1) @ p["decoder.attention.W_c.weight"])
        return h @ p["decoder.out.weight"] + p["decoder.out.bias"]

    def join(self, number, x):
        weight = self.parameters[f"encoder.joins.{number}.weight"]
        return x @ weight + self.parameters[f"encoder.joins.{number}.bias"]

    def scores(self, h, states):
        einsum, p = self.torch.einsum, self.parameters
        if self.config.attention == "dot":
            return einsum("bti,bsi->bts", h, states)
        W_a = p["decoder.attention.score.W_a"]
        if self.config.attention == "general":
            return einsum("bti,ij,bsj->bts", h, W_a, states)
        U_a, v = p["decoder.attention.score.U_a"], p["decoder.attention.score.v"]
        asking = einsum("ij,btj->bti", W_a, h)[:, :, None]
        return einsum("btsi,i->bts", self.torch.tanh(asking + einsum("ij,bsj->bsi", U_a, states)[:, None]), v)


@pytest.mark.oracle
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_logits_loss_and_every_gradient_equal_pytorch(config, smoothing, torch):
    config = config.replace(dropout=0.0, label_smoothing=smoothing)
    model = make_model(config).train()
    twin = Twin(model, torch)
    batch = random_batch(config)
    mine, theirs = model(**batch), twin.logits(batch)
    np.testing.assert_allclose(mine.logits.numpy(), theirs.detach().numpy(), rtol=0, atol=1e-11)
    loss = torch.nn.functional.cross_entropy(
        theirs.flatten(0, 1), torch.tensor(batch["labels"]).flatten(), label_smoothing=smoothing
    )
    np.testing.assert_allclose(mine.loss.item(), loss.item(), rtol=1e-12)
    mine.loss.backward()
    loss.backward()
    for name, parameter in model.named_parameters():
        part, _, rest = name.partition(".network.")
        if rest:
            expected = transposed(dict(twin.networks[part].named_parameters())[rest].grad)
        else:
            expected = twin.parameters[name].grad
        gradient = backend.to_numpy(parameter.grad)
        np.testing.assert_allclose(gradient, expected.numpy(), rtol=0, atol=1e-11, err_msg=name)


# --- Attention -------------------------------------------------------------------------------------------


def test_weights_are_given_when_asked_for():
    config = LSTM.replace(attention="general")
    model, batch = make_model(config), random_batch(config)
    assert model(**batch).cross_attentions is None
    (weights,) = model(**batch, output_attentions=True).cross_attentions
    assert weights.shape == (4, batch["labels"].shape[1], batch["input_ids"].shape[1])
    np.testing.assert_allclose(weights.numpy().sum(axis=-1), 1)
    assert (weights.numpy().transpose(0, 2, 1)[batch["attention_mask"] == 0] == 0).all()
    assert make_model(LSTM)(**batch, output_attentions=True).cross_attentions is None


def test_without_attention_the_decoder_knows_the_last_state_alone():
    model, batch = make_model(LSTM), random_batch(LSTM)
    memory = model.encode(batch["input_ids"], batch["attention_mask"])
    assert memory.states is memory.keys is memory.mask is None
    assert [part.shape for part in memory.last] == [(1, 4, 8)] * 2


# --- Its parts --------------------------------------------------------------------------------------------


def test_dropout_is_in_training_alone():
    config = LSTM.replace(dropout=0.5, attention="dot")
    model, batch = make_model(config), random_batch(config)
    still = model(**batch).logits.numpy()
    np.testing.assert_array_equal(model(**batch).logits.numpy(), still)
    assert not np.allclose(model.train()(**batch).logits.numpy(), still)


def test_a_word_behind_padding_is_an_error():
    model = make_model(LSTM)
    mask = np.array([[1, 1, 1], [1, 0, 1]])
    with pytest.raises(ValueError, match="attention_mask: row 1 has a word behind padding"):
        model(np.array([[4, 5, 6], [4, 5, 6]]), mask, labels=np.array([[4], [5]]))


def test_initial_gradients_reach_every_parameter(config):
    model = RecurrentSeq2Seq(config).eval()
    output = model(**random_batch(config))
    assert abs(output.loss.item() - np.log(config.vocab_size)) < 0.7
    output.loss.backward()
    for name, parameter in model.named_parameters():
        assert np.abs(backend.to_numpy(parameter.grad)).max() > 1e-5, name
