"""One vector for a text, and how alike texts are by it (Reimers & Gurevych 2019)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from minigrad import nn
from minigrad.bert.examples import number_of
from minigrad.bert.features import Features, pad
from minigrad.bert.model import BertModel
from minigrad.bert.task_metrics import correlations
from minigrad.messages import quoted
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.reading import CheckpointError, is_there, read_json
from minigrad.training.tally import quiet_overflow


def mean_pool(X: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
    """The mean over the tokens, without padding: X (B, L, H), attention_mask (B, L) -> (B, H)."""
    mask = attention_mask[:, :, None].astype(X.dtype)  # (B, L, 1)
    return (X * mask).sum(axis=1) / mask.sum(axis=1)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Each row (n, H) divided by its length, so that the product of two is their cosine."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def embed(
    model: BertModel,
    tokenizer: WordPieceTokenizer,
    texts: Sequence[str],
    max_length: int,
    batch_size: int = 32,
    pooling: str = "mean",
) -> tuple[np.ndarray, int]:
    """The vectors of texts (n, H) in float32, without dropout, and how many texts were longer than `max_length` tokens.

    pooling: "mean", or "cls" for the vector of [CLS] alone. Raises ValueError if the vectors are not finite.
    """
    encoded = [tokenizer.encode(text) for text in texts]
    cut = [index for index, one in enumerate(encoded) if len(one) > max_length]
    for index in cut:
        encoded[index] = tokenizer.encode(texts[index], max_length=max_length)
    features = [Features(one.input_ids, one.token_type_ids) for one in encoded]
    order = sorted(range(len(texts)), key=lambda index: len(encoded[index]))  # little padding in a batch
    vectors = np.zeros((len(texts), model.config.hidden_size), np.float32)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        batch = pad([features[index] for index in chosen], model.config.pad_token_id)
        with nn.evaluating(model), quiet_overflow():
            X = model(**batch).last_hidden_state.numpy()  # (B, L, H)
            vectors[chosen] = X[:, 0] if pooling == "cls" else mean_pool(X, batch["attention_mask"])
    if not np.isfinite(vectors).all():
        raise ValueError("the model's vectors are not finite (nan or inf): its weights are too large")
    return vectors, len(cut)


def agreement(labels: Sequence[object], cosines: np.ndarray) -> dict[str, float] | None:
    """How well cosines agree with labels: pearson and spearman; None where one of the labels is no number."""
    numbers = [number_of(label) for label in labels]
    return None if None in numbers else correlations(np.array(numbers, np.float64), cosines)


def read_pooling(folder: Path) -> tuple[str, int | None]:
    """How a folder of sentence-transformers makes a vector, and of how many tokens; of any other, the mean.

    Raises CheckpointError for what is not done here.
    """
    place = "1_Pooling"
    for module in read_json(path, list) if is_there(path := folder / "modules.json") else []:
        kind, own = (
            (str(module.get(name)) for name in ("type", "path")) if isinstance(module, dict) else ("", "")
        )
        place = own if kind.endswith(".Pooling") else place
        if not re.search(r"\.(Transformer|Pooling|Normalize)$", kind):  # Normalize changes no cosine
            raise CheckpointError(
                f"{path}: expected Transformer, Pooling and Normalize, got {quoted(module)}"
            )
    prompts = read_json(path) if is_there(path := folder / "config_sentence_transformers.json") else {}
    if prompts.get("default_prompt_name") is not None:
        raise CheckpointError(
            f"{path}: default_prompt_name puts words before each text, which is not done here"
        )
    values = read_json(path) if is_there(path := folder / place / "config.json") else {}
    modes = [name for name, value in values.items() if name.startswith("pooling_mode_") and value is True]
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    pooling = known.get(" ".join(modes), "") if modes else values.get("pooling_mode", "mean")
    if pooling not in known.values():
        raise CheckpointError(f"{path}: expected mean or [CLS], got {', '.join(modes) or quoted(pooling)}")
    longest = read_json(path) if is_there(path := folder / "sentence_bert_config.json") else {}
    length = longest.get("max_seq_length")
    return pooling, length if isinstance(length, int) and length > 2 else None
