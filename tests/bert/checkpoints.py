"""Small models to save, what they compute, and ways to change what was saved."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tiny import SMALL

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


def inputs(config: BertConfig) -> dict[str, np.ndarray]:
    """Three sequences of different lengths."""
    rng = np.random.default_rng(3)
    mask = np.arange(9) < np.array([9, 4, 7])[:, None]
    ids = rng.integers(3, config.vocab_size, (3, 9))
    return {
        "input_ids": np.where(mask, ids, config.pad_token_id),
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": rng.integers(0, config.type_vocab_size, (3, 9)),
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


def set_config(**values):
    """A change of a folder: these values in its config.json."""

    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change
