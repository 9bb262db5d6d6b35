"""What is stored with the course, and the page that lists it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from minigrad.bert.stored import stored

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[2]
SIZES = {  # of a config.json: layers, heads, d_model, with None where an architecture has none
    "bert": ("num_hidden_layers", "num_attention_heads", "hidden_size"),
    "transformer-seq2seq": ("num_encoder_layers", "nhead", "d_model"),
    "recurrent-seq2seq": ("num_layers", None, "hidden_size"),
}


def test_the_symbols_page_lists_each_stored_model_with_its_sizes():
    text = (ROOT / "book" / "symbols.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (table,) = (part for part in section if part.startswith("The stored models"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "| `" in line]
    listed = {name.strip("`"): (sizes, int(count.replace(",", ""))) for name, _, sizes, count in rows}

    there = {path.parent.name for path in (ROOT / "book" / "runs").glob("*/model.safetensors")}
    assert set(listed) == there
    for name, (sizes, count) in listed.items():
        assert count == sum(
            weights.size for weights in load_file(stored(name) / "model.safetensors").values()
        )
        config = json.loads((stored(name) / "config.json").read_text(encoding="utf-8"))
        layers, heads, d_model = (config[key] if key else "none" for key in SIZES[config["model_type"]])
        if config["model_type"] == "transformer-seq2seq":
            layers = f"{layers} and {config['num_decoder_layers']}"
        assert sizes == f"{layers}, {heads}, {d_model}"


def test_a_name_that_is_not_stored_is_answered_with_those_that_are():
    with pytest.raises(FileNotFoundError, match=r"no stored 'strat'; it has .*start"):
        stored("strat")
