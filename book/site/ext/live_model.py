"""The page "Ask the model": a stored BERT as a script for the reader's browser, and the page with one example in it.

The page works without a script too: what stands in it is computed here. With one, `static/ask.js` writes the same for
any text that the reader types; `static/bert.js` is the forward pass.
"""

from __future__ import annotations

import base64
import csv
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from bert_course.common.live_examples import MODELS, best_possible
from bert_course.common.live_tokenizer import tokenizer_script
from bert_course.common.palette import STYLE
from bert_course.common.softmax import softmax
from bert_course.stored import stored
from minigrad import ops
from minigrad.bert import from_pretrained
from minigrad.tensor import no_grad
from minigrad.text.wordpiece import CONTINUES, MASK, UNK

TOP = 5  # guesses for a gap
LEVELS = 20  # shades of an attention map: full from a weight of a half on
LEARNED = (0, 200, 3000, 6000, 12000)  # steps whose best guess the first page shows
FIRST_HEAD = (1, 0)  # layer and head whose map is shown first
UNUSED = ("bert.pooler.", "cls.seq_relationship.")  # what guesses no words


# --- The model as a script -------------------------------------------------------------------------------


def script_name(name: str) -> str:
    """The file below _static that has the model."""
    return f"ask-{name}.js"


def model_script(name: str, folder: Path | None = None) -> str:
    """JavaScript that adds a model to `courseModels`: config, tokenizer, shapes, and its float16 numbers in base64.

    name: of a stored model, by which the page finds it. folder: where it is, if not in book/records. A page may load
    several. Raises ValueError if the model is not in float16.
    """
    folder = stored(name) if folder is None else folder
    tensors = {
        key: value
        for key, value in load_file(folder / "model.safetensors").items()
        if not key.startswith(UNUSED)
    }
    if wrong := sorted(key for key, value in tensors.items() if value.dtype != np.float16):
        raise ValueError(f"{folder}: expected float16 tensors, got {wrong[0]} in {tensors[wrong[0]].dtype}")
    tokenizer = from_pretrained(folder).tokenizer
    if tokenizer is None:
        raise ValueError(f"{folder}: the page needs the model's vocab.txt")
    numbers = b"".join(np.ascontiguousarray(value).astype("<f2").tobytes() for value in tensors.values())
    parts = {
        "config": (folder / "config.json").read_text(encoding="utf-8").strip(),
        "tokenizer": tokenizer_script(tokenizer),
        "tensors": json.dumps([[key, value.shape] for key, value in tensors.items()]),
        "weights": json.dumps(base64.b64encode(numbers).decode()),
    }
    body = ",\n".join(f"{key}: {text}" for key, text in parts.items())
    return f"(window.courseModels = window.courseModels || {{}})[{json.dumps(name)}] = {{\n{body}\n}};\n"


# --- What the model says of a text -----------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What a model of N layers with A heads says of a text of L tokens with n gaps.

    pieces: L strings, [CLS] and [SEP] with them. places: of the gaps. guesses: for each gap TOP pieces with their
    probabilities. attention: N lists of A arrays (L, L).
    """

    pieces: list[str]
    places: list[int]
    guesses: list[list[tuple[str, float]]]
    attention: list[list[np.ndarray]]


def segments(model: Any, tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """The segment of each of L tokens: 0 up to the first [SEP], 1 after it if the model knows two kinds."""
    first = ids.index(tokenizer.sep_token_id)
    return [int(place > first and model.config.type_vocab_size > 1) for place in range(len(ids))]


def answer(model: Any, tokenizer: Any, text: str) -> Answer:
    """What the model says of a text, of which it reads as much as it has positions for.

    A [SEP] in the text ends its first segment.
    """
    encoding = tokenizer.encode(text, max_length=model.config.max_position_embeddings)
    ids = np.array([encoding.input_ids])  # (1, L)
    kinds = np.array([segments(model, tokenizer, encoding.input_ids)])  # (1, L)
    places = [i for i, token in enumerate(encoding.input_ids) if token == tokenizer.mask_token_id]
    attention = []
    with no_grad():
        scores = model(ids, token_type_ids=kinds).prediction_logits.numpy()[0].astype(float)  # (L, V)
        states = model.bert(ids, token_type_ids=kinds).hidden_states  # N + 1 of (1, L, H)
        for x, layer in zip(states, model.bert.encoder.layer, strict=False):
            part = layer.attention.self
            q, k = part.split_heads(part.query(x)), part.split_heads(part.key(x))  # (1, A, L, d_k)
            s = q @ k.permute(0, 1, 3, 2) / q.shape[-1] ** 0.5
            attention.append(list(ops.softmax(s).numpy()[0]))
    guesses = []
    for place in places:
        shares = softmax(scores[place])
        best = np.argsort(-shares, kind="stable")[:TOP]
        guesses.append([(tokenizer.id_to_token(int(i)), float(shares[i])) for i in best])
    return Answer(encoding.tokens, places, guesses, attention)


# --- The page --------------------------------------------------------------------------------------------


def page(scripts: Mapping[str, str], short: bool = False) -> str:
    """The widget with the first model's first example in it.

    scripts: for each model, by its stored name, the address of its script from the page. short: guesses alone, and the
    model is loaded when the reader first presses a piece or types.
    """
    name = next(iter(scripts))
    text = MODELS[name].examples[0].text
    loaded = from_pretrained(stored(name))
    said = answer(loaded.model.eval(), loaded.tokenizer, text)
    place = said.places[0]
    weights = said.attention[FIRST_HEAD[0]][FIRST_HEAD[1]]
    parts = {
        "SHORT": " short" * short,
        "PALETTE": STYLE,
        "MODELS": html.escape(json.dumps([_model(one, script) for one, script in scripts.items()])),
        "CHOICE": _choice(list(scripts)) if len(scripts) > 1 else "",
        "TEXT": html.escape(text),
        "CHIPS": _chips(name),
        "COUNTS": f"{len(said.pieces)} pieces, {len(said.places)} gap",
        "PIECES": _pieces(said),
        "GUESSES": _guesses(said.guesses[0]),
        "AFTER": _learned(stored(name)) if short else _AFTER,
        "HEADS": _heads(said.attention),
        "LAYER": str(FIRST_HEAD[0] + 1),
        "HEAD": str(FIRST_HEAD[1] + 1),
        "MAP": _map(said.pieces, weights, place),
        "SAYS": _says(said.pieces, weights, place),
        "LEVELS": _levels(said.pieces, weights, place),
    }
    return re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], _PAGE)


def facts(name: str) -> str:
    """What the model is, in HTML: its sizes, what it was trained on, its loss on held-out text; from stored files."""
    folder = stored(name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with open(folder / "evaluation.csv", encoding="utf-8", newline="") as file:
        last = list(csv.DictReader(file))[-1]
    numbers = load_file(folder / "model.safetensors").values()
    text, frequencies = MODELS[name].text, float(last["unigram_entropy"])
    if (folder / "learning.json").exists():
        run = json.loads((folder / "learning.json").read_text(encoding="utf-8"))
        text, frequencies = f"{text}, {run['training_words']:,} words", float(run["frequencies_loss"])
    sizes = {
        "layers": f"{config['num_hidden_layers']}, with {config['num_attention_heads']} heads each",
        "vectors": f"{config['hidden_size']} numbers for each piece",
        "positions": f"{config['max_position_embeddings']}",
        "vocabulary": f"{config['vocab_size']:,} pieces",
        "weights": f"{sum(value.size for value in numbers):,}",
        "trained on": f"{text}, in {int(last['step']):,} steps",
        "held-out text": (
            f"a loss of {float(last['mlm_loss']):.2f} nats for a hidden piece, {float(last['mlm_accuracy']):.0%} "
            f"guessed right; frequencies alone give {frequencies:.2f} nats"
        ),
    }
    rows = "".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in sizes.items())
    return f'<dl class="course-ask-facts">{rows}</dl>'


def _model(name: str, script: str) -> dict[str, Any]:
    """What ask.js knows of a model before its script is loaded."""
    shown = MODELS[name]
    examples = [
        {"text": one.text, "best": best_possible(one) if shown.checked else None} for one in shown.examples
    ]
    return {"name": name, "title": shown.title, "script": script, "examples": examples, "chips": _chips(name)}


def _choice(names: Sequence[str]) -> str:
    radios = "".join(
        f'<label><input type="radio" name="course-model" value="{name}" autocomplete="off"{" checked" * (i == 0)}> '
        f"{html.escape(MODELS[name].title)}</label>"
        for i, name in enumerate(names)
    )
    return f'<fieldset class="models"><legend>What the model has read</legend>{radios}</fieldset>'


def _chips(name: str) -> str:
    """The pairs of examples of a model: a title, and a button for each."""
    groups = []
    for pair in MODELS[name].pairs:
        buttons = "".join(
            f'<button type="button" class="chip" data-text="{html.escape(one.text)}"{" data-cover" * one.cover}>'
            f"{html.escape(one.says)}</button>"
            for one in (pair.one, pair.other)
        )
        groups.append(f'<div class="pair"><span>{html.escape(pair.title)}</span>{buttons}</div>')
    return "".join(groups)


def _pieces(said: Answer) -> str:
    best = {place: guesses[0] for place, guesses in zip(said.places, said.guesses, strict=True)}
    chips = []
    for i, piece in enumerate(said.pieces):
        kind = "fixed" if i in (0, len(said.pieces) - 1) else "gap shown" if piece == MASK else ""
        kind += " more" * piece.startswith(CONTINUES) + " unknown" * (piece == UNK)
        note = f"{best[i][0]} {best[i][1]:.2f}" if i in best else ""
        chips.append(
            f'<span class="piece {kind}">{html.escape(piece)}<small>{html.escape(note)}</small></span>'
        )
    return "".join(chips)


def _guesses(guesses: Sequence[tuple[str, float]]) -> str:
    rows = "".join(
        f'<li style="--share: {share:.4f}"><span class="word">{html.escape(piece)}</span> '
        f'<span class="share">{share:.2f}</span></li>'
        for piece, share in guesses
    )
    return f"<ol>{rows}</ol>"


def _learned(folder: Path) -> str:
    """The best guess for the gap of the first example at some steps of a run, for which `learning` left a record."""
    points = json.loads((folder / "learning.json").read_text(encoding="utf-8"))["points"]
    rows = []
    for point in (one for one in points if one["step"] in LEARNED):
        word, share = point["guesses"][0]
        rows.append(
            f'<li style="--share: {share:.4f}"><span class="word">step {point["step"]:,}: {html.escape(word)}</span> '
            f'<span class="share">{share:.2f}</span></li>'
        )
    return (
        f'<p class="title">While it learned (another run)</p><ol class="learned">{"".join(rows)}</ol>'
        '<p class="quiet">Press a piece above: the guesses without it will stand here.</p>'
    )


def _heads(attention: Sequence[Sequence[np.ndarray]]) -> str:
    choices = []
    for layer, heads in enumerate(attention):
        for head, weights in enumerate(heads):
            checked = " checked" if (layer, head) == FIRST_HEAD else ""
            choices.append(
                f'<label class="head"><input type="radio" name="course-head" value="{layer} {head}" disabled{checked}>'
                f'<span class="small">{_squares(weights)}</span><span>layer {layer + 1}, head {head + 1}</span></label>'
            )
    return "".join(choices)


def _map(pieces: Sequence[str], weights: np.ndarray, row: int) -> str:
    names = [html.escape(piece) for piece in pieces]
    columns = "".join(f"<span>{name}</span>" for name in names)
    rows = "".join(f"<span{' class=here' * (i == row)}>{name}</span>" for i, name in enumerate(names))
    return f'<div class="columns">{columns}</div><div class="rows">{rows}</div>{_squares(weights, row)}'


def _squares(weights: np.ndarray, row: int | None = None) -> str:
    """Weights (L, L) as squares of SVG, a path for each shade."""
    n = len(weights)
    levels = np.rint(np.minimum(2 * np.asarray(weights, float), 1) * LEVELS).astype(int)
    paths = "".join(
        f'<path opacity="{level / LEVELS:g}" d="'
        + "".join(f"M{j} {i}h1v1h-1z" for i, j in np.argwhere(levels == level))
        + '"/>'
        for level in range(1, LEVELS + 1)
        if (levels == level).any()
    )
    frame = "" if row is None else f'<rect x="0" y="{row}" width="{n}" height="1"/>'
    return f'<svg viewBox="0 0 {n} {n}" preserveAspectRatio="none" aria-hidden="true">{paths}{frame}</svg>'


def _says(pieces: Sequence[str], weights: np.ndarray, row: int) -> str:
    most = np.argsort(-weights[row], kind="stable")[:3]
    told = ", ".join(f"{html.escape(pieces[j])} {weights[row, j]:.2f}" for j in most)
    return f"<b>{html.escape(pieces[row])}</b> looks most at: {told}"


def _levels(pieces: Sequence[str], weights: np.ndarray, row: int) -> str:
    return "".join(
        f'<span{" class=here" * (i == row)} style="--share: {weights[row, i]:.2f}">{html.escape(piece)}</span>'
        for i, piece in enumerate(pieces)
    )


_AFTER = """<p class="title">With one piece hidden</p><p
 class="quiet">Press a piece above. The guesses without it will stand here.</p>"""
_PAGE = """<div class="course-ask course-colours@SHORT@" data-models="@MODELS@">@PALETTE@
<noscript><style>.course-ask .tools, .course-ask .waits {display: none}</style>
<p>Without JavaScript the model cannot run. This is what it said of one sentence.</p></noscript>
<div class="tools">
@CHOICE@
<label for="course-ask-text">Your sentence</label>
<textarea id="course-ask-text" rows="2" maxlength="2000" autocomplete="off" spellcheck="false">@TEXT@</textarea>
<div class="chips" role="group" aria-label="Examples">@CHIPS@</div>
<div class="row">
<button type="button" class="course-button insert">Insert a gap</button>
<button type="button" class="course-button link">Copy link</button>
<span class="counts" role="status">@COUNTS@</span><span class="time"></span>
<span class="heard" role="status"></span>
</div>
</div>
<div class="tray"><p class="title" id="course-ask-reads">What the model reads
<span class="quiet waits">Press a piece to hide it, or a gap to see its guesses.</span></p>
<div class="pieces" role="group" aria-labelledby="course-ask-reads">@PIECES@</div>
<label class="cover waits">Cover the right side
<input type="range" min="0" max="1" value="0" autocomplete="off"></label>
<details class="words waits" hidden><summary></summary><p></p></details></div>
<div class="lists">
<div class="list before"><p class="title">Guesses for the gap</p>@GUESSES@</div>
<div class="list after waits">@AFTER@</div>
<div class="list itself waits"><p class="title">The hidden piece</p><p
 class="quiet">The guesses for the piece itself will stand here.</p></div>
</div>
<div class="looks">
<fieldset class="heads"><legend>Where each head looks</legend>@HEADS@</fieldset>
<div class="chosen">
<div class="map" role="img"
 aria-label="Attention of layer @LAYER@, head @HEAD@: a row for each piece that looks">@MAP@</div>
</div>
<div class="told">
<p class="legend">weight: 0 <span class="scale"></span> 0.5 or more</p>
<p class="says">@SAYS@</p>
<p class="levels">@LEVELS@</p>
<p class="quiet">Each row shows where one piece looks.
<span class="waits">Point at a row, or go there with Tab and the arrow keys.</span></p>
</div>
</div>
</div>
"""
