"""The page on which you explore what the heads look at: one HTML file that asks nothing of a network.

`look.html` is the page without its contents: its style, its script, and the places for what is filled in here. The
script draws what the data say; without a script, the page has a table of the heads.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.bert.look import MIXED, PATTERNS, Head, Look
from minigrad.colours import COLOURS
from minigrad.files import write_atomic
from minigrad.messages import shown

SIGN = '<meta name="generator" content="minigrad look">'  # by which a page is known for one
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
LONGEST_TEXT = 4000  # characters of a text that the page quotes


def look_page(found: Look, model: str, notes: Sequence[str] = ()) -> str:
    """The page as HTML. model: its name for the reader. notes: what is to be said of the checkpoint."""
    parts = {
        "SIGN": SIGN,
        "LIGHT": _variables(dark=False),
        "DARK": _variables(dark=True),
        "TITLE": _escaped(" ".join(found.texts), 80),
        "TEXT": " ".join(f"<q>{_escaped(text, LONGEST_TEXT)}</q>" for text in found.texts),
        "MODEL": _escaped(model, 200),
        "SIZES": _sizes(found),
        "FILLINGS": _fillings(found),
        "TABLE": _table(found),
        "NOTES": "".join(f"<li>{_escaped(note, 1000)}</li>" for note in notes),
        "MAP": (files("minigrad.bert") / "attention_map.js").read_text(encoding="utf-8"),
        "DATA": json.dumps(_data(found), separators=(",", ":")).replace("<", "\\u003c"),
    }
    template = (files("minigrad.bert") / "look.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda place: parts[place[1]], template)


def require_place(path: Path, force: bool = False) -> None:
    """Raise ValueError if a page may not be written there: into no folder, or over a file that is no such page.

    force: whether any file may be replaced.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file in it, such as {path / 'look.html'}")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} to write {path.name} into")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no regular file: name another")
    if path.exists() and not force and not _is_page(path):
        raise ValueError(f"{path} is there already and is no page of look: name another, or add --force")


def _is_page(path: Path) -> bool:
    with open(path, "rb") as file:
        return SIGN.encode() in file.read(1000)


def write_page(path: Path, page: str, force: bool = False) -> None:
    """Write a page whole or not at all; an earlier one is replaced. Raises as `require_place`, and SaveError."""
    require_place(path, force)
    write_atomic(path, page.encode())


def packed(weights: np.ndarray) -> str:
    """Weights in 0 … 1 as thousandths, two digits in base 36 for each, row by row."""
    thousandths = np.rint(1000 * weights).astype(int).reshape(-1)
    return "".join(DIGITS[number // 36] + DIGITS[number % 36] for number in thousandths.tolist())


def _data(found: Look) -> dict[str, Any]:
    """What the script draws; numbers have three digits after the point."""
    return {
        "tokens": [shown(token) for token in found.tokens],
        "segments": found.segments,
        "most": round(found.most_entropy, 3),
        "patterns": PATTERNS,
        "mixed": MIXED,
        "heads": [
            {
                "layer": head.layer,
                "number": head.number,
                "entropy": round(head.entropy, 3),
                "pattern": head.pattern,
                "strongest": head.strongest,
                "shares": {
                    name: [round(share.share, 3), round(share.even, 3), share.rows]
                    for name, share in head.shares.items()
                },
                "weights": packed(head.weights),
            }
            for head in found.heads
        ],
    }


def _variables(dark: bool) -> str:
    return "; ".join(f"--{name}: {pair[dark]}" for name, pair in COLOURS.items())


def _escaped(text: str, limit: int) -> str:
    """A text for the page: what is not printable spelled out, and no character that HTML takes for its own."""
    return html.escape(shown(text, limit))


def _sizes(found: Look) -> str:
    of_layer = len(found.heads) // found.layers
    layers = "1 layer" if found.layers == 1 else f"{found.layers} layers"
    heads = "1 head" if of_layer == 1 else f"{of_layer} heads"
    return f"{layers} of {heads}, {len(found.tokens)} tokens"


def _fillings(found: Look) -> str:
    """For each [MASK], a list of its likeliest pieces with bars as long as they are likely."""
    lists = []
    for number, fillings in enumerate(found.fillings.values(), start=1):
        name = "[MASK]" if len(found.fillings) == 1 else f"[MASK] {number}"
        items = "".join(
            f'<li style="--share: {100 * one.probability:.1f}%">{_escaped(one.token, 200)} '
            f"<span>{100 * one.probability:.0f} %</span></li>"
            for one in fillings
        )
        lists.append(f'<div class="filling"><strong>{name}</strong><ol>{items}</ol></div>')
    return "".join(lists)


def _table(found: Look) -> str:
    rows = []
    for head in found.heads:
        cells = "".join(f"<td>{cell}</td>" for cell in _cells(head))
        rows.append(f'<tr><th scope="row">{head.name}</th>{cells}</tr>')
    return "".join(rows)


def _cells(head: Head) -> list[str]:
    share = head.shares[head.strongest]
    name = PATTERNS[head.strongest] + ("" if head.pattern != MIXED else " (not pronounced)")
    return [name, f"{100 * share.share:.1f} %", f"{100 * share.even:.1f} %", f"{head.entropy:.2f}"]
