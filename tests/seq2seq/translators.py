"""What the tests of models and of decoding share: small models with loud weights, batches, searches without a cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minigrad
from minigrad import Tensor, backend, nn, no_grad, ops
from minigrad.seq2seq.config import RecurrentConfig, Seq2SeqConfig, TransformerConfig
from minigrad.seq2seq.data import pad_pairs
from minigrad.seq2seq.recurrent import RecurrentSeq2Seq
from minigrad.seq2seq.transformer import Transformer

TRANSFORMER = TransformerConfig(
    vocab_size=13,
    d_model=12,
    nhead=3,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dim_feedforward=20,
    label_smoothing=0.0,
)
LSTM = RecurrentConfig(vocab_size=13, hidden_size=8)

CONFIGS: dict[str, Seq2SeqConfig] = {
    "transformer": TRANSFORMER,
    "transformer, odd": TRANSFORMER.replace(d_model=10, nhead=5, num_encoder_layers=1, num_decoder_layers=3),
    "lstm": LSTM,
    "lstm, dot": LSTM.replace(attention="dot"),
    "lstm, general, two layers, both directions": LSTM.replace(
        attention="general", num_layers=2, bidirectional=True, hidden_size=7
    ),
    "gru, additive": LSTM.replace(cell="gru", attention="additive"),
    "gru, both directions": LSTM.replace(cell="gru", bidirectional=True, num_layers=2),
    "rnn, general": LSTM.replace(cell="rnn", attention="general"),
}


def make_model(config: Seq2SeqConfig, dtype: str = "float64", seed: int = 7) -> Any:
    """A model in evaluation mode whose weights are large enough that every part matters, biases too."""
    minigrad.manual_seed(seed)
    model: nn.Module = (
        Transformer(config) if isinstance(config, TransformerConfig) else RecurrentSeq2Seq(config)  # type: ignore[arg-type]
    )
    rng = np.random.default_rng(seed)
    model.load_state_dict(
        {
            name: backend.to_numpy(array) + 0.3 * rng.standard_normal(array.shape)
            for name, array in model.state_dict().items()
        }
    )
    return model.astype(dtype).eval()


def random_batch(config: Seq2SeqConfig, seed: int = 0, batch: int = 4) -> dict[str, np.ndarray]:
    """Random pairs of several lengths, without end tokens inside; the first source and the second target are long."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, (batch, 2))
    lengths[0, 0] = lengths[1, 1] = 7
    pairs = [
        (rng.integers(4, config.vocab_size, n), rng.integers(4, config.vocab_size, m)) for n, m in lengths
    ]
    return pad_pairs(pairs, config.end_token_id, config.pad_token_id)


def one_row(batch: dict[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    """One pair of a batch, without its padding."""
    length = batch["attention_mask"][row].sum()
    count = (batch["labels"][row] != -100).sum()
    return {
        "input_ids": batch["input_ids"][row : row + 1, :length],
        "attention_mask": batch["attention_mask"][row : row + 1, :length],
        "labels": batch["labels"][row : row + 1, :count],
    }


# --- Searches without a cache -----------------------------------------------------------------------------


def next_log_probabilities(model: Any, source: np.ndarray, ids: list[int]) -> np.ndarray:
    """log P of each word after `ids`, (V,), by the whole model over the whole target up to there."""
    config = model.config
    with no_grad():
        logits = model(source[None], decoder_input_ids=np.array([[config.start_token_id, *ids]])).logits
    log_p = ops.log_softmax(logits[0, -1]).numpy().astype(np.float64)
    log_p[[config.pad_token_id, config.start_token_id]] = -math.inf
    return log_p


def plain_beam(
    model: Any, source: np.ndarray, num_beams: int, penalty: float, max_length: int
) -> list[tuple[list[int], float, bool]]:
    """Beam search up to max_length without an early end: (ids, score, finished), best first."""
    live: list[tuple[list[int], float]] = [([], 0.0)]
    finished: list[tuple[list[int], float, bool]] = []
    for length in range(1, max_length + 1):
        divisor = ((5 + length) / 6) ** penalty
        ranked = sorted(
            (
                (total + log_p, ids, word)
                for ids, total in live
                for word, log_p in enumerate(next_log_probabilities(model, source, ids))
                if log_p > -math.inf
            ),
            key=lambda one: -one[0],
        )
        live = []
        for total, ids, word in ranked:
            if word == model.config.end_token_id:
                finished.append((ids, total / divisor, True))
            else:
                live.append(([*ids, word], total))
                if len(live) == num_beams:
                    break
    finished.sort(key=lambda one: -one[1])
    return (finished + [(ids, total / divisor, False) for ids, total in live])[:num_beams]


def steps(model: Any, memory: Any, decoder_input_ids: np.ndarray) -> Tensor:
    """The logits of `decoder_input_ids` (N, T) one word at a time, with the cache: (N, T, V)."""
    state = model.start(memory)
    logits = []
    for column in decoder_input_ids.T:
        newest, state = model.step(state, column)
        logits.append(newest)
    return ops.stack(logits, axis=1)
