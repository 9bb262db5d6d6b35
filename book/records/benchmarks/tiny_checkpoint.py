"""A tiny BERT as `transformers` makes and saves it, with what it computes: the reference of chapter `encoder`.

    python book/records/benchmarks/tiny_checkpoint.py

writes book/records/tiny/: config.json, model.safetensors and vocab.txt, a checkpoint in Hugging Face's format with
sizes that differ from each other; reference.json, two pairs of texts with their pieces; reference.safetensors, the ids
of both pairs as one padded batch, and every hidden state, the pooled vectors and the logits of `BertForPreTraining`.

The weights are NumPy's draws, large enough that each part matters, with biases and LayerNorm's gains and biases too.
Needs the packages of `make oracles`. tests/course/chapters/test_encoder.py makes it again and compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

SEED = 12
SIZES = {
    "hidden_size": 30,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 44,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """the a of and is was are in on by to it bank river money water house city boat loan rate door key word
open close full deep old new near far we they sat saw swam paid lend borrow high low . , ? ##s ##ed ##ing ##er ##y
##n ##ly ##est re un ##open"""
PIECES = [*SPECIAL, *WORDS.split()]
PAIRS = [
    ("we sat on the river bank .", "the water was deep and the boats swam near ."),
    ("banks are lending money", "unopened doors , xylophones"),
]
LENGTH = 23  # of the batch, of the 24 positions that there are


def make(folder: Path) -> None:
    """Write the checkpoint and its reference into `folder`."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    config = transformers.BertConfig(vocab_size=len(PIECES), **SIZES)
    model = transformers.BertForPreTraining(config).eval()
    _draw(model)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")

    tokenizer = transformers.BertTokenizer(vocab=dict(zip(PIECES, range(len(PIECES)), strict=True)))
    batch = tokenizer(*zip(*PAIRS, strict=True), padding="max_length", max_length=LENGTH, return_tensors="pt")
    with torch.no_grad():
        output = model(**batch, output_hidden_states=True)
        pooled = model.bert(**batch).pooler_output
    arrays = {name: batch[name].numpy() for name in ("input_ids", "token_type_ids", "attention_mask")}
    arrays |= {
        "hidden_states": np.stack([states.numpy() for states in output.hidden_states]),  # (N + 1, B, L, H)
        "pooler_output": pooled.numpy(),  # (B, H)
        "prediction_logits": output.prediction_logits.numpy(),  # (B, L, V)
        "seq_relationship_logits": output.seq_relationship_logits.numpy(),  # (B, 2)
    }
    save_file({n: np.ascontiguousarray(a) for n, a in arrays.items()}, folder / "reference.safetensors")
    pieces = [tokenizer.convert_ids_to_tokens(ids) for ids in arrays["input_ids"].tolist()]
    facts = {
        "made_by": "book/records/benchmarks/tiny_checkpoint.py",
        "versions": {"transformers": transformers.__version__, "torch": torch.__version__},
        "pairs": PAIRS,
        "pieces": pieces,
    }
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)
    (folder / "reference.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _draw(model: Any) -> None:
    """Put new numbers into every parameter, in the order of their names."""
    import torch

    rng = np.random.default_rng(SEED)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            shape = tuple(parameter.shape)
            if name.endswith("LayerNorm.weight"):
                values = rng.uniform(0.5, 1.5, shape)
            elif len(shape) == 1:
                values = 0.3 * rng.standard_normal(shape)
            elif name.endswith("embeddings.weight"):
                values = rng.standard_normal(shape)
            else:  # a matrix, (out, in) here: outputs about as large as inputs
                values = rng.standard_normal(shape) / np.sqrt(shape[1])
            parameter.copy_(torch.from_numpy(values))


if __name__ == "__main__":
    make(Path("book/records/tiny"))
