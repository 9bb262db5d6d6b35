"""What `positions` shows: a trained model with other tables of positions, and ways to tell one head the positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from bert_course.common import pencil
from bert_course.common.palette import colour
from bert_course.common.rotary import rotated
from bert_course.common.small_model import small_model, word_losses
from bert_course.common.widgets import Frame, Player, player, svg
from minigrad import nn, no_grad, ops, optim, random
from minigrad.nn import truncated_normal
from minigrad.seq2seq.transformer import sinusoids
from minigrad.tensor import Tensor

# --- A hand that turns -----------------------------------------------------------------------------------

_TURN = 0.4  # radians a position: sixteen positions are nearly one turn
_RADIUS, _MIDDLE = 96, 150  # of the dial, and where its centre is, in the picture's own units


def turning_hands(apart: int = 3) -> Player:
    """A hand for a query and one for a key `apart` positions before it: both move on, and their angle stays."""
    frames = []
    for j in range(0, 16 - apart, apart):
        i = j + apart
        text = (
            f"The hand of position {j} is at {j}ω, that of position {i} at {i}ω. From one to the other it is {apart}ω, "
            f"whatever the positions, and the dot product of the two is cos({apart}ω) = {math.cos(apart * _TURN):.2f}."
        )
        frames.append(Frame(f"Positions {j} and {i}", _dial(i, j), text))
    alt = (
        "A dial with the numbers 0 to 15 and two hands, whose angle stays while both move on around the dial"
    )
    return player(frames, "both move", alt)


def _on_dial(position: float, radius: float) -> tuple[float, float]:
    """The place of a position's hand, which starts upright and goes round as a clock's does."""
    angle = position * _TURN
    return _MIDDLE + radius * math.sin(angle), _MIDDLE - radius * math.cos(angle)


def _dial(i: int, j: int) -> str:
    """The hands of a query at position i and a key at position j, and those where they would stand elsewhere."""
    parts = [
        f'<circle cx="{_MIDDLE}" cy="{_MIDDLE}" r="{_RADIUS}" fill="none" stroke="currentColor" stroke-opacity="0.3"/>'
    ]
    for position in range(16):
        x, y = _on_dial(position, _RADIUS + 20)
        tone = {i: "query", j: "key"}.get(position, "")
        bold = {"font_weight": "bold"} if tone else {"fill_opacity": "0.6"}
        parts.append(pencil.words(x, y + 6, str(position), 17, tone, **bold))
    (x0, y0), (x1, y1) = _on_dial(j, 44), _on_dial(i, 44)
    between = f"M{_MIDDLE} {_MIDDLE}L{x0:.1f} {y0:.1f}A44 44 0 0 1 {x1:.1f} {y1:.1f}Z"
    parts.append(f'<path d="{between}" fill="{colour("weight")}" fill-opacity="0.3"/>')
    for position, tone in ((j, "key"), (i, "query")):
        x, y = _on_dial(position, _RADIUS - 4)
        ends = f'x1="{_MIDDLE}" y1="{_MIDDLE}" x2="{x:.1f}" y2="{y:.1f}"'
        parts.append(f'<line {ends} stroke="{colour(tone)}" stroke-width="4" stroke-linecap="round"/>')
    x, y = _on_dial((i + j) / 2, 66)
    parts += [
        f'<circle cx="{_MIDDLE}" cy="{_MIDDLE}" r="5" fill="currentColor"/>',
        pencil.words(x, y + 6, f"{i - j}ω", 17, "weight", font_weight="bold"),
        pencil.words(300, 60, f"query at position {i}", 17, "query", "start"),
        pencil.words(300, 88, f"key at position {j}", 17, "key", "start"),
        pencil.words(300, 116, f"dot product {math.cos((i - j) * _TURN):.2f}", 17, "weight", "start"),
    ]
    return svg(500, 2 * _MIDDLE, parts)


# --- One layer, and ways to give it the order --------------------------------------------------------------

WORDS, D_MODEL, PLACE, SHORT, LONG, FURTHEST = 16, 64, 3, 16, 32, 8
LONGEST = 256  # of the texts on which a relative kind is tested
KINDS = ("none", "learned", "sinusoids", "bias", "bias without a limit", "rotary", "ALiBi")
SLOPE = 0.5  # of ALiBi: the steepest of the eight heads of Press et al. (2022)


class OneLayer(nn.Module):
    """Logits for each token from one head over all tokens, and `kind` of KINDS says how positions come in.

    none: nowhere. learned, sinusoids: a table (LONG, D_MODEL) is added to the words' vectors. bias: a learned number
    for each distance, up to FURTHEST on both sides and the same beyond, is added to the scores; without a limit, up to
    LONGEST. rotary: queries and keys are turned by the angles of their positions. ALiBi: the distance times SLOPE is
    taken off the scores, the same to both sides. For a seed, what all kinds have is drawn alike. Raises ValueError for
    another kind.

    scale: what the scores are multiplied by.
    """

    scale = 1 / math.sqrt(D_MODEL)

    def __init__(self, kind: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind should be one of {', '.join(KINDS)}, and is {kind!r}")
        std = 1 / math.sqrt(D_MODEL)
        self.kind = kind
        self.words = nn.Embedding(WORDS, D_MODEL, math.sqrt(0.5))
        self.query, self.key, self.value = (nn.Linear(D_MODEL, D_MODEL, std=std) for _ in range(3))
        self.decoder = nn.Linear(D_MODEL, WORDS, std=std)
        if kind == "learned":
            self.positions = nn.Parameter(truncated_normal((LONG, D_MODEL), math.sqrt(0.5)))
        elif kind.startswith("bias"):
            self.furthest = FURTHEST if kind == "bias" else LONGEST
            self.bias = nn.Parameter(np.zeros(2 * self.furthest + 1, np.float32))

    def forward(self, ids: np.ndarray, start: int = 0) -> Tensor:
        """ids (B, L) at the positions from `start` on -> (B, L, WORDS)."""
        A, V = self.attend(ids, start)
        return self.decoder(A @ V)

    def attend(self, ids: np.ndarray, start: int = 0) -> tuple[Tensor, Tensor]:
        """The head's weights (B, L, L) and its values (B, L, D_MODEL)."""
        L = ids.shape[1]
        x = self.words(ids)  # (B, L, d_model)
        if self.kind == "learned":
            x = x + self.positions[start : start + L]
        elif self.kind == "sinusoids":
            x = x + Tensor(sinusoids(L, D_MODEL, start), dtype=x.dtype)
        q, k, v = self.query(x), self.key(x), self.value(x)
        if self.kind == "rotary":
            q, k = rotated(q), rotated(k)
        scores = q @ k.transpose() * self.scale  # (B, L, L)
        if self.kind.startswith("bias"):
            place = np.arange(L)
            distance = np.clip(place - place[:, None], -self.furthest, self.furthest)  # (L, L), j - i
            scores = scores + self.bias[distance + self.furthest]
        elif self.kind == "ALiBi":
            place = np.arange(L)
            scores = scores + Tensor(-SLOPE * np.abs(place - place[:, None]), dtype=scores.dtype)
        return ops.softmax(scores), v


def batch_of(rng: np.random.Generator, n: int, L: int, task: str) -> tuple[np.ndarray, np.ndarray]:
    """n random sequences (n, L) and the word to name for each token (n, L), -100 where there is none.

    task: "left", the word PLACE places to the left of the token; "fixed", the word at position PLACE.
    """
    ids = rng.integers(0, WORDS, (n, L))
    labels = np.full((n, L), -100)
    if task == "left":
        labels[:, PLACE:] = ids[:, :-PLACE]
    else:
        labels[:] = ids[:, PLACE : PLACE + 1]
    return ids, labels


def score(model: OneLayer, task: str, L: int) -> dict[str, float]:
    """On 500 fresh sequences of length L: the loss in nats, and the shares of right words.

    seen: at positions below SHORT. new: at the others, 0 if there are none.
    """
    ids, labels = batch_of(np.random.default_rng(1000), 500, L, task)
    with no_grad():
        logits = model(ids)
        loss = ops.cross_entropy(logits.reshape(-1, WORDS), labels.reshape(-1))
    right, asked = logits.numpy().argmax(axis=-1) == labels, labels >= 0
    shares = [right[:, at][asked[:, at]] for at in (slice(SHORT), slice(SHORT, None))]
    seen, new = (float(share.mean()) if share.size else 0.0 for share in shares)
    return {"loss": loss.item(), "seen": seen, "new": new}


def train(
    kind: str, task: str = "left", seed: int = 0, rate: float = 1e-2, steps: int = 1000, moved: bool = False
) -> OneLayer:
    """A layer trained with Adam on sequences of SHORT tokens, 32 a step.

    moved: the sequences of a step begin at a position drawn from 0 to LONG - SHORT, and not at 0.
    """
    random.manual_seed(seed)
    model = OneLayer(kind)
    rng = np.random.default_rng(seed)
    optimizer = optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    for _ in range(steps):
        ids, labels = batch_of(rng, 32, SHORT, task)
        start = int(rng.integers(LONG - SHORT + 1)) if moved else 0
        optimizer.zero_grad()
        ops.cross_entropy(model(ids, start).reshape(-1, WORDS), labels.reshape(-1)).backward()
        optimizer.step()
    return model


# --- Tables of positions in a trained model ---------------------------------------------------------------


class StoredModel:
    """The model that is stored with the course, whose table of positions can be exchanged.

    table: its own, trained, (64, 128) in float64.
    """

    def __init__(self) -> None:
        self.model, self.tokenizer = small_model()
        self.table = self.model.bert.embeddings.position_embeddings.weight.numpy().astype(float)

    def loss(self, table: np.ndarray) -> float:
        """The mean loss, in nats, on each piece of SENTENCES, hidden one at a time, with another table (64, 128)."""
        with self._exchanged(table):
            return float(word_losses(self.model, self.tokenizer).mean())

    def read(self, ids: np.ndarray, table: np.ndarray) -> np.ndarray:
        """The encoder's output (L, 128) for token ids (L,), with another table (64, 128)."""
        with self._exchanged(table), no_grad():
            return self.model.bert(ids[None]).last_hidden_state.numpy()[0]

    @contextmanager
    def _exchanged(self, table: np.ndarray) -> Iterator[None]:
        weight = self.model.bert.embeddings.position_embeddings.weight
        own = weight.data
        weight.data = Tensor(table, dtype=weight.dtype).data
        try:
            yield
        finally:
            weight.data = own
