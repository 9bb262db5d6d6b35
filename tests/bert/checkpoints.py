"""Small models to save, what they compute, their twins in transformers, and ways to change what was saved."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny import SMALL

from minigrad import backend
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.tensor import no_grad
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

CONFIGS = {
    "small": SMALL,
    "odd sizes": SMALL.replace(vocab_size=53, hidden_size=15, num_attention_heads=5, intermediate_size=7),
    "one head, one layer": SMALL.replace(num_hidden_layers=1, num_attention_heads=1, hidden_size=9),
    "square": SMALL.replace(intermediate_size=12, vocab_size=12, max_position_embeddings=12),
    "three segments, large eps": SMALL.replace(type_vocab_size=3, layer_norm_eps=1e-3, pad_token_id=2),
}


def make_model(config: BertConfig = SMALL, kind: type = BertForPreTraining):
    """A model whose weights are large enough that every part matters, LayerNorms and biases too."""
    model = kind(config)
    rng = np.random.default_rng(7)
    state = {name: 0.3 * rng.standard_normal(array.shape) for name, array in model.state_dict().items()}
    model.load_state_dict({n: a + 1 if n.endswith("LayerNorm.weight") else a for n, a in state.items()})
    return model.eval()


def inputs(config: BertConfig, lengths: tuple[int, ...] = (9, 4, 7), seed: int = 3) -> dict[str, np.ndarray]:
    """Sequences of these lengths, in which only padding has the id of [PAD]."""
    rng = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths))
    mask = np.arange(shape[1]) < np.array(lengths)[:, None]
    return {
        "input_ids": np.where(mask, rng.integers(3, config.vocab_size, shape), config.pad_token_id),
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": rng.integers(0, config.type_vocab_size, shape),
    }


def logits(model) -> list[np.ndarray]:
    """Both outputs of a model on `inputs`."""
    with no_grad():
        output = model(**inputs(model.config))
    if isinstance(model, BertModel):
        return [output.last_hidden_state.numpy(), output.pooler_output.numpy()]
    return [output.prediction_logits.numpy(), output.seq_relationship_logits.numpy()]


def assert_same_logits(mine, theirs, tolerance: float = 1e-5) -> None:
    """Hold both outputs of two models against each other."""
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def twin(model, dtype: str):
    """The same model with the same weights in transformers."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, type(model).__name__)
    theirs = kind(transformers.BertConfig.from_dict(model.config.to_dict()))
    arrays = {name: backend.to_numpy(array) for name, array in model.state_dict().items()}
    state = {name: torch.tensor(_turned(name, array).copy()) for name, array in arrays.items()}
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected
    assert all("decoder" in name for name in missing)
    theirs.tie_weights()
    return theirs.eval().to(getattr(torch, dtype))


def assert_same_gradients(model, theirs, drop_padding: bool = False) -> None:
    """Hold every gradient against the twin's; drop_padding: without that of [PAD], which transformers drops."""
    expected = {name: p.grad.numpy() for name, p in theirs.named_parameters() if p.grad is not None}
    assert set(expected) == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        gradient = _turned(name, backend.to_numpy(parameter.grad))
        if drop_padding and name.endswith("word_embeddings.weight"):
            gradient[model.config.pad_token_id] = 0
        np.testing.assert_allclose(gradient, expected[name], rtol=0, atol=1e-9, err_msg=name)


def _turned(name: str, array: np.ndarray) -> np.ndarray:
    """A weight as PyTorch has it: (out, in)."""
    return array.T if array.ndim == 2 and not name.endswith("embeddings.weight") else array


def tokenizer(lower_case: bool = True, strip_accents: bool | None = None) -> WordPieceTokenizer:
    """A vocabulary with capitals and accents, as long as the model of `SMALL` has rows."""
    vocab = [*SPECIAL_TOKENS, "a", "b", "A", "é", "e", "##b", "É", "##é", "##e", "!", "中"]
    others = [f"q{number}" for number in range(SMALL.vocab_size - len(vocab))]
    return WordPieceTokenizer([*vocab, *others], lower_case, strip_accents)


def rewrite(folder: Path, change) -> None:
    """Replace the weights in a folder by what `change` makes of them."""
    path = folder / "model.safetensors"
    save_file({name: np.ascontiguousarray(a) for name, a in change(load_file(path)).items()}, path)


def keep(pattern: str):
    """For `rewrite`: leave only the weights whose names begin with this."""
    return lambda state: {name: array for name, array in state.items() if re.match(pattern, name)}


def shard(folder: Path, state) -> dict[str, str]:
    """Write weights into two files and the index of them."""
    where = {name: f"model-0000{number % 2 + 1}-of-00002.safetensors" for number, name in enumerate(state)}
    for file in set(where.values()):
        save_file({name: array for name, array in state.items() if where[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return where


def set_config(name: str = "config.json", **values):
    """A change of a folder: these values in its config.json, or in another file."""

    def change(folder):
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change
