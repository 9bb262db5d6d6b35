"""What `encoder` shows: a checkpoint's weights by part, the whole model step by step, and where the parameters are."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from bert_course.check.outcome import has_gap
from bert_course.check.trial import on_numpy
from bert_course.common.figures import Figure, Picture, Rectangle, figure
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.softmax import softmax
from bert_course.parts import by_part as by_part
from bert_course.stored import stored
from minigrad import Tensor, no_grad
from minigrad.bert import from_pretrained
from minigrad.bert.config import BertConfig
from minigrad.bert.encoder import BertLayer
from minigrad.bert.model import BertModel
from minigrad.bert.predict import next_sentence
from minigrad.text.normalization import normalize, pre_tokenize

# --- A learner's BERT beside the reference ----------------------------------------------------------------


def tensors_of(model: Any) -> dict[str, Any]:
    """A model of the library as the exercise `bert` takes a model: `by_part`'s dict of Tensors, with h and eps."""
    config = model.config
    weights = by_part(dict(model.named_parameters()))
    return {**weights, "h": config.num_attention_heads, "eps": config.layer_norm_eps}


@on_numpy()
def against_reference(bert: Callable[..., Any], parts: Any) -> None:
    """Print how far a learner's `bert`, with the learner's parts, is from what transformers computed.

    Says what is missing, or where it fails, in one line.
    """
    if has_gap(bert):
        print("bert is not written yet")
        return
    folder = stored("tiny")
    facts = json.loads((folder / "reference.json").read_text("utf-8"))
    expected = load_file(folder / "reference.safetensors")
    last, pooled, length = (
        expected["hidden_states"][-1],
        expected["pooler_output"],
        expected["input_ids"].shape[1],
    )
    loaded = from_pretrained(folder)
    for number, (first, second) in enumerate(facts["pairs"]):
        made = _made(bert, parts, loaded, first.split(), second.split(), length)
        if made is None:
            return
        for name, ours, theirs in zip("XC", made, (last, pooled), strict=True):
            print(f"pair {number + 1}, {name} differs from transformers' by {_far(ours, theirs[[number]])}")


@on_numpy()
def read_texts(bert: Callable[..., Any], parts: Any, first: str, second: str) -> None:
    """Print what a learner's `bert`, with the learner's parts, makes of two texts, beside the library's model.

    The model is the stored one of chapter `start`. The library's `normalize` and `pre_tokenize` cut the texts into
    words, and its head of the next sentence judges the pooled vector. Says what is missing, or where it fails, in one
    line.
    """
    if has_gap(bert):
        print("bert is not written yet")
        return
    loaded = from_pretrained(stored("start"))
    model, tokenizer = loaded.model.eval(), loaded.tokenizer
    assert tokenizer is not None
    encoded = tokenizer.encode(first, second)
    ids, segments = np.array([encoded.input_ids]), np.array([encoded.token_type_ids])  # (1, L) each
    words_1, words_2 = (pre_tokenize(normalize(text)) for text in (first, second))
    made = _made(bert, parts, loaded, words_1, words_2, ids.shape[1])
    if made is None:
        return
    with no_grad():
        theirs = model.bert(ids, token_type_ids=segments).last_hidden_state.numpy()
        logits = model.cls.seq_relationship(Tensor(np.asarray(made[1], np.float32))).numpy()[0]  # (2,)
    pieces = " ".join(tokenizer.id_to_token(i) for i in encoded.input_ids)
    print(textwrap.fill(f"pieces: {pieces}", 80, subsequent_indent=" " * len("pieces: ")))
    print(f"X differs from the library's by {_far(made[0], theirs)}")
    chances = softmax(logits)[0], next_sentence(model, tokenizer, first, second)
    print("the second text follows the first: this BERT {:.2f}, the library {:.2f}".format(*chances))


def _made(
    bert: Callable[..., Any], parts: Any, loaded: Any, first: list[str], second: list[str], length: int
) -> tuple[Any, Any] | None:
    """X and C of a learner's `bert` for two lists of words; None if it fails, which is said."""
    ids = {loaded.tokenizer.id_to_token(i): i for i in range(loaded.tokenizer.vocab_size)}
    try:
        texts = [
            [piece for word in words for piece in parts.split_word(word, ids)] for words in (first, second)
        ]
        pieces, segments, mask = parts.pack(*texts, length)
        rows = {
            "input_ids": [ids[piece] for piece in pieces],
            "token_type_ids": segments,
            "attention_mask": mask,
        }
        with no_grad():
            X, C = bert(
                {name: np.array([row]) for name, row in rows.items()}, parts, tensors_of(loaded.model)
            )
        return X.numpy(), C.numpy()
    except NotImplementedError as error:
        print(f"not yet: {error}")
    except Exception as error:
        pair = f"{' '.join(first)!r}, {' '.join(second)!r}"
        print(f"it fails on the pair {pair}: {type(error).__name__}: {error}")
    return None


def _far(ours: Any, theirs: np.ndarray) -> str:
    """The largest difference between two arrays."""
    apart = float(np.abs(np.asarray(ours) - theirs).max())
    return "less than 1e-5" if apart < 1e-5 else f"{apart:.2g}"


# --- The whole model by hand ------------------------------------------------------------------------------

TOKENS = ["[CLS]", "river", "bank"]
IDS, SEGMENTS = np.array([[0, 1, 2]]), np.array([[0, 0, 0]])


def hand_sized() -> BertModel:
    """A BertModel of 3 words, d_model 4, 2 layers of 2 heads and d_ff 5, whose weights are small multiples of 0.5."""
    config = BertConfig(3, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=5)
    model = BertModel(config.replace(max_position_embeddings=3))
    model.eval()
    rng = np.random.default_rng(24)
    state = {name: rng.integers(-2, 3, array.shape) / 2 for name, array in model.state_dict().items()}
    for name, array in state.items():
        if "LayerNorm" in name:
            array[:] = name.endswith("weight")
    model.load_state_dict(state)
    return model


def encoder_flow() -> Flow:
    """The hand-sized model step by step: what each part makes of three tokens, *bank*'s row with a frame."""
    model = hand_sized()
    values: dict[str, Tensor] = {}
    with no_grad():
        tables = model.embeddings
        values["T"] = tables.word_embeddings(IDS)
        values["S"] = tables.token_type_embeddings(SEGMENTS)
        values["P"] = tables.position_embeddings(np.arange(3)[None])
        x = values["X_0"] = tables(IDS, SEGMENTS)
        for number, layer in enumerate(model.encoder.layer, 1):
            assert isinstance(layer, BertLayer)
            heads, first = layer.attention.self(x, None), layer.attention.output
            values[f"Y_{number}"] = first.dense(heads)
            x = values[f"M_{number}"] = first(heads, x)
            values[f"H_{number}"] = layer.intermediate(x)
            values[f"F_{number}"] = layer.output.dense(values[f"H_{number}"])
            x = values[f"X_{number}"] = layer.output(values[f"H_{number}"], x)
        values["W"] = model.pooler.dense.weight
        assert model.pooler.dense.bias is not None
        values["b"] = model.pooler.dense.bias.reshape(1, -1)
        values["C"] = model.pooler(x[:, 0])
    roles = {"Y": "value", "W": "first", "b": "first"}
    boxes = [
        Box(
            name,
            value.numpy().reshape(-1, value.shape[-1]),
            roles.get(name[0], "token"),
            "tokens" if value.shape[-2:-1] == (3,) else "",
            digits=1,
        )
        for name, value in values.items()
    ]

    def bank(name: str) -> View:
        return View(name, lit=[2])

    def layer_steps(number: int) -> list[Step]:
        before, heads, middle, inner, out, after = (
            f"{letter}_{i}" for letter, i in zip("XYMHFX", (number - 1, *5 * [number]), strict=True)
        )
        return [
            Step(
                f"Layer {number}: attention",
                [[before, "two heads, W_O →", bank(heads)]],
                "Every token asks every token. This is the only step in which rows meet.",
            ),
            Step(
                f"Layer {number}: Add & Norm",
                [[before, "+", bank(heads)], ["LayerNorm →", bank(middle)]],
                "Attention's output is added to its input, and each row is normalised.",
            ),
            Step(
                f"Layer {number}: feed-forward",
                [[bank(middle), "W_1, GELU →", bank(inner)], ["W_2 →", bank(out)]],
                "Each row by itself is widened, goes through GELU, and is narrowed again.",
            ),
            Step(
                f"Layer {number}: Add & Norm",
                [[middle, "+", bank(out)], ["LayerNorm →", bank(after)]],
                f"X_{number} has the shape of X_{number - 1}, so another layer can follow.",
            ),
        ]

    steps = [
        Step(
            "Embeddings",
            [["T", "+", "S"], ["+", "P", "LayerNorm →", bank("X_0")]],
            "Each token gets a row of each table: for its word, its segment and its position.",
        ),
        *layer_steps(1),
        *layer_steps(2),
        Step(
            "The pooler",
            [[View("X_2", only=[0], lit=[0]), "·", "W"], ["+", "b", "tanh →", View("C", lit=[0])]],
            "The pooler makes one vector for the whole input, from the row of [CLS] alone.",
        ),
    ]
    alt = "Three tokens of four numbers go through embeddings, two layers and the pooler, each part with its output"
    return flow(boxes, steps, alt, {"tokens": TOKENS})


# --- Where the parameters are -----------------------------------------------------------------------------


def parameter_map(counts: Mapping[str, Mapping[str, int]]) -> Picture:
    """Parameters as areas.

    counts: by group, a column as wide as its share, and in it by part, as high as its share of the group.
    """
    whole = sum(sum(group.values()) for group in counts.values())
    roles = ("first", "second", "third")

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        x = 0.0
        for role, (group, parts) in zip(roles, counts.items(), strict=True):
            wide, y = sum(parts.values()) / whole, 1.0
            for part, number in parts.items():
                high = number / sum(parts.values())
                y -= high
                place = Rectangle((x, y), wide, high, facecolor=colours[role], alpha=0.25)
                axes.add_patch(place)
                axes.add_patch(
                    Rectangle((x, y), wide, high, facecolor="none", edgecolor=colours[role], linewidth=1)
                )
                if wide * high > 0.02:
                    between = "\n" if high > 0.15 else ", "  # a flat area has room for one line
                    words = f"{part}{between}{number / whole:.1%}"
                    axes.text(x + wide / 2, y + high / 2, words, ha="center", va="center", fontsize=10)
            if wide > 0.1:
                axes.text(x + wide / 2, 1.02, group, ha="center", va="bottom", color=colours[role])
            x += wide
        axes.set(xlim=(-0.005, 1.005), ylim=(0, 1.1))
        axes.axis("off")

    columns = []
    for group, parts in counts.items():
        inside = ", ".join(f"{part} {number / whole:.1%}" for part, number in parts.items())
        columns.append(f"{group} {sum(parts.values()) / whole:.1%} ({inside})")
    return figure(plot, f"The parameters as areas: {'; '.join(columns)}.", (5.4, 3.2))
