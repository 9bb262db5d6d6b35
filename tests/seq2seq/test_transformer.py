"""The encoder-decoder Transformer, held against torch.nn.Transformer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from translators import TRANSFORMER, make_model, random_batch

from minigrad import Tensor, backend, no_grad, random
from minigrad.seq2seq.config import TransformerConfig
from minigrad.seq2seq.data import shift_right
from minigrad.seq2seq.masks import padding_mask
from minigrad.seq2seq.transformer import MultiHeadAttention, Transformer, sinusoids

ODD_CONFIGS = {
    "small": TRANSFORMER,
    "odd sizes": TRANSFORMER.replace(vocab_size=29, d_model=14, nhead=7, dim_feedforward=5),
    "one head, unequal stacks": TRANSFORMER.replace(nhead=1, num_encoder_layers=1, num_decoder_layers=3),
}


@pytest.fixture(params=ODD_CONFIGS, ids=str)
def config(request) -> TransformerConfig:
    return ODD_CONFIGS[request.param]


# --- PyTorch's twin ---------------------------------------------------------------------------------------


def torch_place(name: str, d_model: int) -> tuple[str, slice]:
    """Where PyTorch has the parameter that is called `name` here: its parameter's name, and which rows of it."""
    name = f".{name}".replace(".cross_attn.", ".multihead_attn.").replace(".feed_forward.", ".")
    name = name.replace(".encoder.", ".encoder.layers.").replace(".decoder.", ".decoder.layers.")
    name = name.replace(".out.", ".out_proj.")
    for number, part in enumerate(("query", "key", "value")):
        if f".{part}." in name:
            kind = name.rpartition(".")[2]
            rows = slice(number * d_model, (number + 1) * d_model)
            return name.replace(f"{part}.{kind}", f"in_proj_{kind}")[1:], rows
    return name[1:], slice(None)


def torch_twin(model: Transformer, torch):
    """torch.nn.Transformer with the same weights, and the table of words."""
    config = model.config
    sizes = (config.d_model, config.nhead, config.dim_feedforward)
    options = {"dropout": 0.0, "batch_first": True, "norm_first": False}
    encoder_layer = torch.nn.TransformerEncoderLayer(*sizes, **options)
    decoder_layer = torch.nn.TransformerDecoderLayer(*sizes, **options)
    stacks = {  # without the LayerNorm that PyTorch puts behind each stack, and the paper does not have
        "custom_encoder": torch.nn.TransformerEncoder(
            encoder_layer, config.num_encoder_layers, enable_nested_tensor=False
        ),
        "custom_decoder": torch.nn.TransformerDecoder(decoder_layer, config.num_decoder_layers),
    }
    twin = torch.nn.Transformer(config.d_model, config.nhead, batch_first=True, **stacks).double()
    load(twin, dict(model.named_parameters()), config.d_model, torch)
    words = torch.tensor(model.embeddings.words.weight.numpy(), requires_grad=True)
    return twin, words


def load(twin, parameters, d_model, torch) -> None:
    """Copy parameters into PyTorch's; each of PyTorch's must be filled."""
    filled = {name: 0 for name, _ in twin.named_parameters()}
    theirs = dict(twin.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            if name == "embeddings.words.weight":
                continue
            place, rows = torch_place(name, d_model)
            theirs[place][rows] = torch.tensor(parameter.numpy().T.copy())
            filled[place] += parameter.size
    assert filled == {name: parameter.numel() for name, parameter in theirs.items()}


def torch_logits(twin, words, batch, torch):
    """What the twin makes of a batch, with PyTorch's own masks."""
    d_model = words.shape[1]
    labels = np.where(batch["labels"] == -100, 0, batch["labels"])
    decoder_input_ids = np.concatenate([np.full((len(labels), 1), 2), labels[:, :-1]], axis=1)

    def embed(ids):
        vectors = words[torch.tensor(ids)] * math.sqrt(d_model)
        return vectors + torch.tensor(sinusoids(ids.shape[1], d_model))

    source_padding = torch.tensor(batch["attention_mask"] == 0)
    length = decoder_input_ids.shape[1]
    out = twin(
        embed(batch["input_ids"]),
        embed(decoder_input_ids),
        tgt_mask=torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1),
        src_key_padding_mask=source_padding,
        memory_key_padding_mask=source_padding,
        tgt_key_padding_mask=torch.tensor(decoder_input_ids == 0),
    )
    return out @ words.T


@pytest.mark.oracle
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_logits_loss_and_every_gradient_equal_pytorch(config, smoothing, torch):
    config = config.replace(dropout=0.0, label_smoothing=smoothing)
    model = make_model(config).train()
    batch = random_batch(config)
    mine = model(**batch)
    twin, words = torch_twin(model, torch)
    theirs = torch_logits(twin, words, batch, torch)
    np.testing.assert_allclose(mine.logits.numpy(), theirs.detach().numpy(), rtol=0, atol=1e-11)
    loss = torch.nn.functional.cross_entropy(
        theirs.flatten(0, 1), torch.tensor(batch["labels"]).flatten(), label_smoothing=smoothing
    )
    np.testing.assert_allclose(mine.loss.item(), loss.item(), rtol=1e-12)
    mine.loss.backward()
    loss.backward()
    gradients = {name: parameter.grad.numpy() for name, parameter in twin.named_parameters()}
    for name, parameter in model.named_parameters():
        if name != "embeddings.words.weight":
            place, rows = torch_place(name, config.d_model)
            gradient = backend.to_numpy(parameter.grad)
            np.testing.assert_allclose(gradient, gradients[place][rows].T, rtol=0, atol=1e-10, err_msg=name)
    gradient = backend.to_numpy(model.embeddings.words.weight.grad)
    np.testing.assert_allclose(gradient, words.grad.numpy(), rtol=0, atol=1e-10)


def loud(module):
    """float64, with biases and gains that are not zeros and ones."""
    rng = np.random.default_rng(3)
    state = {
        n: backend.to_numpy(a) + 0.3 * rng.standard_normal(a.shape) for n, a in module.state_dict().items()
    }
    module.load_state_dict(state)
    return module.astype("float64").eval()


@pytest.mark.oracle
def test_attention_weights_equal_pytorch(config, torch, leaf):
    attention = loud(MultiHeadAttention(config))
    twin = torch.nn.MultiheadAttention(config.d_model, config.nhead, batch_first=True, dtype=torch.float64)
    load(twin, dict(attention.named_parameters()), config.d_model, torch)
    x, memory = leaf(2, 4, config.d_model), leaf(2, 6, config.d_model)
    source = np.array([[1] * 6, [1, 1, 1, 0, 0, 0]])
    mask = padding_mask(source, x)
    output, weights = attention(x, attention.keys_values(memory), mask, output_attentions=True)
    theirs, their_weights = twin(
        *(torch.tensor(t.numpy()) for t in (x, memory, memory)),
        key_padding_mask=torch.tensor(source == 0),
        average_attn_weights=False,
    )
    np.testing.assert_allclose(output.numpy(), theirs.detach().numpy(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights.numpy(), their_weights.detach().numpy(), rtol=0, atol=1e-12)


# --- Its parts --------------------------------------------------------------------------------------------


def test_sinusoids_are_the_papers_formula():
    table = sinusoids(50, 6)
    for pos in (0, 1, 7, 49):
        for i in range(3):
            angle = pos / 10000 ** (2 * i / 6)
            np.testing.assert_allclose(table[pos, 2 * i], math.sin(angle), rtol=0, atol=1e-12)
            np.testing.assert_allclose(table[pos, 2 * i + 1], math.cos(angle), rtol=0, atol=1e-12)


def test_sinusoids_go_on_where_earlier_ones_ended():
    np.testing.assert_array_equal(sinusoids(3, 8, start=4), sinusoids(7, 8)[4:])


def test_words_and_positions_start_about_equally_large():
    model = Transformer(TRANSFORMER.replace(vocab_size=2000, d_model=64, nhead=2))
    words = backend.to_numpy(model.embeddings.words.weight.data) * 8
    positions = sinusoids(100, 64)
    for vectors in (words, positions):
        assert 0.6 < np.sqrt((vectors**2).mean()) < 1.1


# --- Attention weights, dropout, how it starts ----------------------------------------------------------


def test_weights_are_given_when_asked_for():
    model, batch = make_model(TRANSFORMER), random_batch(TRANSFORMER)
    length, target_length = batch["input_ids"].shape[1], batch["labels"].shape[1]
    assert model(**batch).cross_attentions is None
    output = model(**batch, output_attentions=True)
    shapes = {
        "encoder_attentions": (4, 3, length, length),
        "decoder_attentions": (4, 3, target_length, target_length),
        "cross_attentions": (4, 3, target_length, length),
    }
    hidden = batch["attention_mask"] == 0
    future = np.triu(np.ones((target_length, target_length), bool), 1)
    for name, shape in shapes.items():
        weights = [one.numpy() for one in getattr(output, name)]
        assert [one.shape for one in weights] == [shape, shape]
        for one in weights:
            np.testing.assert_allclose(one.sum(axis=-1), 1)
            if name == "decoder_attentions":
                assert (one[:, :, future] == 0).all()
            else:
                assert (one.transpose(0, 3, 1, 2)[hidden] == 0).all()


def test_dropout_is_on_the_sums_and_on_each_sublayers_output_in_training_alone(monkeypatch):
    config = TRANSFORMER.replace(dropout=0.5)
    model, batch = make_model(config), random_batch(config)
    still = model(**batch).logits.numpy()
    np.testing.assert_array_equal(model(**batch).logits.numpy(), still)
    shapes, draw = [], random.keep_mask

    def keep_mask(like, shape, p):
        shapes.append(shape)
        return draw(like, shape, p)

    monkeypatch.setattr(random, "keep_mask", keep_mask)
    model.train()
    assert not np.allclose(model(**batch).logits.numpy(), still)
    # the sums; two sub-layers in each of two encoder layers, three in each of two decoder layers
    assert len(shapes) == 2 + 2 * 2 + 2 * 3
    assert {shape[-1] for shape in shapes} == {config.d_model}


def test_without_layers_it_is_the_embeddings_alone():
    config = TRANSFORMER.replace(num_encoder_layers=0, num_decoder_layers=0)
    model, batch = make_model(config), random_batch(config)
    ids = shift_right(batch["labels"], 2, 0)
    x = model.embeddings(ids).numpy()
    expected = x @ model.embeddings.words.weight.numpy().T
    np.testing.assert_allclose(model(**batch).logits.numpy(), expected)


def test_initial_logits_are_as_large_as_they_should():
    """So that the loss begins near that of a guess, log V, and gradients reach every layer."""
    config = TransformerConfig(
        vocab_size=500, d_model=64, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=256
    )
    model = Transformer(config).eval()
    output = model(**random_batch(config))
    assert 0.5 < output.logits.numpy().std() < 1.5
    assert abs(output.loss.item() - math.log(500)) < 1
    output.loss.backward()
    sizes = {name: float(np.abs(backend.to_numpy(p.grad)).max()) for name, p in model.named_parameters()}
    # a key's bias adds the same to all scores of a query, so it has no gradient
    assert min(size for name, size in sizes.items() if not name.endswith("key.bias")) > 1e-6
    assert max(size for name, size in sizes.items() if name.endswith("key.bias")) < 1e-6


def test_a_state_says_how_far_it_is():
    model, batch = make_model(TRANSFORMER), random_batch(TRANSFORMER)
    with no_grad():
        state = model.start(model.encode(batch["input_ids"], batch["attention_mask"]))
        assert (state.length, state.rows) == (0, 4)
        _, state = model.step(state, np.array([2, 2, 2, 2]))
        _, state = model.step(state, np.array([4, 5, 6, 7]))
    assert state.length == 2
    assert [tuple(t.shape for t in past) for past in state.past] == [((4, 3, 2, 4),) * 2] * 2
    assert isinstance(state.past[0][0], Tensor)
    fewer = state.select(np.array([3, 3]))
    assert (fewer.length, fewer.rows) == (2, 2)
    assert state.select(np.arange(4)) is state
