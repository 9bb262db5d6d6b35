"""The rows of the source documents, and the cell of the course that covers each.

A row is one thing that one of the five documents says and that the course implements: a component with its shape, a
number, or a statement. A: a page of formulas for BERT-Base's forward pass. B: a long article on BERT and the
Transformer. C: a worked walk through one encoder block. D: notes on the attention heads of BERT. E: an essay on BERT's
architecture and scaling.

Each chapter says in its metadata which rows it covers, and in which cell a reader sees each of them built, run or
stated: `{"course": {"rows": {"A13": "67ac5202"}}}`, or `{}` if it covers none. A row may have a cell on several pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from minigrad.course.contents import NUMBERS

FORM = "a mapping from each row to the id of the cell that covers it, such as {'A13': '67ac5202'}"
HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*$")


def faults(notebook: Any) -> Iterator[str]:
    """What is wrong with the rows in a notebook's metadata."""
    course = notebook.metadata.get("course", {})
    if "claims" in course:
        yield f"course.claims is called course.rows now: {FORM}"
    if "rows" not in course:
        yield f"course.rows is missing in its metadata: {FORM}"
        return
    rows = course["rows"]
    if not isinstance(rows, dict):
        yield f"course.rows is {type(rows).__name__} {rows!r}, not {FORM}"
        return
    cells = {cell.id: cell for cell in notebook.cells}
    for row, identity in rows.items():
        if row not in ROWS:
            yield f"there is no row {row}"
        cell = cells.get(identity) if isinstance(identity, str) else None
        if cell is None:
            yield f"row {row}: there is no cell {identity!r}"
        elif not cell.source.strip():
            yield f"row {row}: the cell {identity} is empty"
        elif "remove-cell" in cell.metadata.get("tags", []):
            yield f"row {row}: the page does not show the cell {identity}, which has the tag remove-cell"


def headings(notebook: Any, identity: str) -> list[str]:
    """The headings that a cell stands under: the last one above it, and those in its own text.

    The one above is left out where the cell begins with a heading. The page's title is not among them. Raises
    ValueError if the notebook has no such cell.
    """
    above: list[str] = []
    for cell in notebook.cells:
        own = [text for _, level, text in _headings(cell) if level > 1]
        if cell.id == identity:
            begins_with_one = any(line == 0 for line, _, _ in _headings(cell))
            return own if begins_with_one else above[-1:] + own
        above += own
    raise ValueError(f"there is no cell {identity!r}")


def _headings(cell: Any) -> Iterator[tuple[int, int, str]]:
    """Line, level and text of each heading in a cell; empty lines do not count, and fences hold code."""
    if cell.cell_type != "markdown":
        return
    fenced = False
    for number, line in enumerate(filter(str.strip, cell.source.split("\n"))):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and (found := HEADING.match(line)):
            yield number, len(found[1]), found[2]


def place(name: str, notebook: Any, identity: str) -> str:
    """Where a reader finds a cell: `7 One attention head · Why divide by √d_k`.

    name: the chapter's. Several headings have a stroke between them. Raises ValueError where there is no such cell.
    """
    number = NUMBERS[name]
    titles = (text for cell in notebook.cells for _, level, text in _headings(cell) if level == 1)
    title = next(titles, name).removeprefix(f"{number}. ")
    under = " / ".join(headings(notebook, identity))
    return f"{number} {title} · {under}" if under else f"{number} {title}"


def listing(chapters: dict[str, Any]) -> list[str]:
    """A line for each row, with its text and where its cells stand, or `not yet`; then how many have a cell.

    chapters: notebooks without `faults`, by their names, in the course's order.
    """
    lines, covered = [], 0
    for row, text in ROWS.items():
        places = [
            place(name, notebook, notebook.metadata["course"]["rows"][row])
            for name, notebook in chapters.items()
            if row in notebook.metadata["course"]["rows"]
        ]
        covered += bool(places)
        lines.append(f"{row:4} {text}: {'; '.join(places) or 'not yet'}")
    return [*lines, f"{covered} of {len(ROWS)} rows have a cell"]


ROWS: dict[str, str] = {
    "A1": "the token table, V x 768",
    "A2": "the learned position table, 512 x 768",
    "A3": "12 heads, 12 layers",
    "A4": "W_Q, W_K, W_V of each head and layer, 768 x 64",
    "A5": "the feed-forward layer's first weights, 768 x 3072, and bias",
    "A6": "the feed-forward layer's second weights, 3072 x 768, and bias",
    "A7": "the pooler's weights, 768 x 768",
    "A8": "the ids of a sequence, 1 x 512",
    "A9": "the look-up of the token vectors",
    "A10": "token plus position",
    "A11": "the loop over layers and heads",
    "A12": "Q, K, V, each 512 x 64",
    "A13": "the weights A = softmax(Q Kᵀ / √d_k), 512 x 512",
    "A14": "a head's output, A V",
    "A15": "concatenation of the heads",
    "A16": "the feed-forward layer's inner activation",
    "A17": "the feed-forward layer's output",
    "A18": "LayerNorm of a residual sum",
    "A19": "pooler and softmax over classes, from row 0",
    "B1": "what BERT is, from whom, for what",
    "B2": "a deep bidirectional encoder that is fine-tuned",
    "B3": "Transformer instead of recurrence or convolution",
    "B4": "sequence-to-sequence with recurrent networks and its bottleneck",
    "B5": "all encoder states for the decoder, with attention",
    "B6": "score, softmax, weighted sum at each decoder step",
    "B7": "the decoder's steps, one by one",
    "B8": "six encoders, six decoders",
    "B9": "the sub-layers of encoder and decoder",
    "B10": "self-attention step by step, with the division by 8",
    "B11": "eight heads, concatenated and projected",
    "B12": "the three uses of attention",
    "B13": "positional encoding, learned or fixed",
    "B14": "residual connection and LayerNorm around each sub-layer",
    "B15": "batch norm and layer norm",
    "B16": "the padding mask",
    "B17": "the sequence mask",
    "B18": "which attention takes which mask",
    "B19": "the decoder's input shifted right; start and end tokens",
    "B20": "the output layer, softmax, and the choice of a word",
    "B21": "BASE and LARGE",
    "B22": "pre-training, then fine-tuning all parameters",
    "B23": "masked language modelling: 15 %, 80/10/10",
    "B24": "next-sentence prediction: its pairs and its input",
    "B25": "next-sentence prediction: its classifier and the joint loss",
    "B26": "WordPiece",
    "B27": "token, segment and position, added",
    "B28": "fine-tuning: classification, question answering, tagging",
    "B29": "features: six choices on NER",
    "B30": "the results that the papers quote",
    "C1": "the steps of a block in order",
    "C2": "L = 1024, d_model = 512, h = 8, d_k = 64",
    "C3": "one X, three projections",
    "C4": "the split into heads",
    "C5": "scores, 1024 x 1024 a head, divided by √d_k",
    "C6": "softmax by rows",
    "C7": "weights times values",
    "C8": "heads in parallel, concatenated",
    "C9": "the output projection, 512 x 512",
    "C10": "Add & Norm with the attention's input",
    "C11": "512 to 2048 and back",
    "C12": "the second Add & Norm",
    "C13": "N blocks",
    "D1": "a head's queries, keys and values as linear maps",
    "D2": "the attention weights and a head's output",
    "D3": "weights read as importance",
    "D4": "the size of the training text",
    "D5": "the two pre-training tasks",
    "D6": "fine-tuning from sentiment to question answering",
    "D7": "[CLS] first, [SEP] last and between texts",
    "D8": "12 x 12 heads in BASE",
    "D9": "layer-head numbers",
    "D10": "the analysis fits any attention model",
    "E1": "Q, K, V from X",
    "E2": "softmax(Q Kᵀ / √d_k) V",
    "E3": "heads in parallel and a last linear map",
    "E4": "attention to both sides, for question answering and classification",
    "E5": "position added to the embedding",
    "E6": "absolute positions and their limits; relative ones",
    "E7": "what attention has over recurrence",
    "E8": "scaling laws",
}
