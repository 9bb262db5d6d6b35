"""Makes book/records/published.safetensors: what transformers computes with the published model of chapter `published`.

    python book/records/benchmarks/published_reference.py

needs the package that chapter names, torch and transformers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save

from bert_course.common.published_model import published_folder
from minigrad.files import write_atomic

TEXTS = ("A man is eating food.", "Someone has a meal.", "The stock market fell today.")
TARGET = Path(__file__).parents[1] / "published.safetensors"


def computed(folder: Path) -> dict[str, np.ndarray]:
    """input_ids, attention_mask (3, L) and last_hidden_state (3, L, d_model) of TEXTS by transformers."""
    import torch
    from tokenizers import Tokenizer
    from transformers import BertModel

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(list(TEXTS))
    ids, mask = (
        np.array([getattr(one, name) for one in encoded], np.int64) for name in ("ids", "attention_mask")
    )
    model = BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = model(torch.tensor(ids), attention_mask=torch.tensor(mask)).last_hidden_state
    return {"input_ids": ids, "attention_mask": mask, "last_hidden_state": states.numpy()}


if __name__ == "__main__":
    write_atomic(TARGET, save(computed(published_folder())))
