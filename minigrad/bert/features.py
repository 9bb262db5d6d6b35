"""Examples as the model reads them: ids, what is to be learned from them, and batches."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from minigrad.bert.config import IGNORED
from minigrad.bert.examples import NUMBERS, ExampleError, Examples, Row, appearance, have_none
from minigrad.messages import quoted
from minigrad.text.normalization import normalize, origins, word_places
from minigrad.text.tokenizer import SPECIAL_TOKEN, WordPieceTokenizer
from minigrad.text.wordpiece import CONTINUES, SPECIAL_TOKENS
from minigrad.training.epochs import Batch, Epochs

Place = tuple[int, int]  # the first character, and the first one after


@dataclass(frozen=True)
class Features:
    """One example as ids.

    targets: what a model of `tasks` takes beside its inputs, by name; none where the example has no answer.
    places: for a question, each token's characters in the context (None outside of it); for words, the
    position of the first piece of each that was kept, among the tokens. starts: the tokens at which an answer
    may start.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    targets: dict[str, int | float | list[int]] = field(default_factory=dict)
    places: list[Any] = field(default_factory=list)
    starts: range = range(0)

    @property
    def teaches(self) -> bool:
        """Whether a target counts: one that was cut off does not."""
        if "labels" in self.targets:
            return self.targets["labels"] != [IGNORED] * len(self.input_ids)
        return self.targets.get("start_positions", OUTSIDE) != OUTSIDE


@dataclass(frozen=True)
class EncodedExamples:
    """All rows of a file, and their features: one of each row, or of a question one for each window of its context.

    owners: for each of the features the index of its row in `rows`, in order. notes: what was cut.
    """

    task: str
    rows: list[Row]
    features: list[Features]
    owners: list[int]
    notes: list[str]

    def fingerprint(self) -> str:
        """A hash of the task, the ids and the targets."""
        content = [self.task, [[f.input_ids, f.token_type_ids, f.targets] for f in self.features]]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def encode_examples(
    examples: Examples,
    tokenizer: WordPieceTokenizer,
    max_length: int,
    id2label: dict[int, str],
    to_learn: bool = True,
) -> EncodedExamples:
    """Examples as ids, each of at most `max_length` tokens.

    A context that is longer is read in windows that overlap by half; other texts are cut, as the notes say. to_learn:
    whether something is to be learned from them, or a loss to be measured; predictions alone need neither.
    Raises ExampleError for a label that `id2label` does not have, and if all that is to be learned was cut
    off.
    """
    numbers = {name: number for number, name in id2label.items()}
    if examples.has_targets and to_learn and examples.task != "qa" and len(numbers) < len(id2label):
        twice = next(name for number, name in id2label.items() if numbers[name] != number)
        raise ExampleError(
            f"{examples.path}: the model has two classes with the name {quoted(twice)}: which is meant?"
        )
    encoders: dict[str, Callable[..., tuple[list[Features], bool]]] = {
        "classify": _of_texts,
        "pairs": _of_texts,
        **dict.fromkeys(NUMBERS, _of_texts),
        "qa": partial(_of_question, else_none=have_none(examples.rows)),
        "tag": _of_words,
    }
    encode = encoders[examples.task]
    features: list[Features] = []
    owners: list[int] = []
    cut = teaching = windowed = 0
    for number, row in enumerate(examples.rows):
        if examples.task not in NUMBERS:
            _require_known_labels(examples, number, numbers)
        windows, whole = encode(row, tokenizer, max_length, numbers)
        features += windows
        owners += [number] * len(windows)
        cut += not whole
        windowed += len(windows) > 1
        teaching += any(one.teaches for one in windows)
    notes = []
    count = len(examples.rows)
    of = f"of {count} rows of {examples.path}"
    if cut:
        notes.append(
            f"{cut} {of} ({cut / count:.0%}) are longer than {max_length} tokens: their ends are cut off"
        )
    if windowed:
        notes.append(
            f"{windowed} {of} ({windowed / count:.0%}) are longer than {max_length} tokens: their contexts are read in "
            "windows that overlap by half"
        )
    if examples.has_targets and to_learn and not teaching:
        raise ExampleError(
            f"{examples.path}: in each row, what is to be learned is beyond {max_length} tokens"
        )
    if examples.has_targets and teaching < count:
        notes.append(
            f"{count - teaching} {of} teach nothing, because what is to be learned of them was cut off"
        )
    return EncodedExamples(examples.task, examples.rows, features, owners, notes)


def _require_known_labels(examples: Examples, number: int, numbers: dict[str, int]) -> None:
    row = examples.rows[number]
    column = "label" if "label" in row else "tags"
    for name in [row["label"]] if "label" in row else row.get("tags", []):
        if name in numbers:
            continue
        alike = [ascii(known) for known in numbers if appearance(known) == appearance(name)]
        known, got = ", ".join(alike or list(numbers)[:20]), ascii(name) if alike else repr(name)
        one_of, looks = ("", ", which looks alike") if alike else ("one of ", "")
        examples.refuse(number, column, f"expected {one_of}{known}, which the model knows, got {got}{looks}")


# --- One example of each task ----------------------------------------------------------------------------
# Each gives its features, of a long context several, and whether all of the text is in them.

# A position beyond any input: the models of `tasks` leave it out, as they do a label of IGNORED.
OUTSIDE = 2**31


def _of_texts(
    row: Row, tokenizer: WordPieceTokenizer, max_length: int, numbers: dict[str, int]
) -> tuple[list[Features], bool]:
    """[CLS] text [SEP], or [CLS] text [SEP] text_pair [SEP]."""
    encoding = tokenizer.encode(row["text"], row.get("text_pair"))
    whole = len(encoding) <= max_length
    if not whole:
        encoding = tokenizer.encode(row["text"], row.get("text_pair"), max_length)
    label = row.get("label")
    targets: dict[str, Any] = {} if label is None else {"labels": numbers.get(label, label)}
    return [Features(encoding.input_ids, encoding.token_type_ids, targets)], whole


def _of_question(
    row: Row, tokenizer: WordPieceTokenizer, max_length: int, _: dict[str, int], else_none: bool
) -> tuple[list[Features], bool]:
    """[CLS] question [SEP] window [SEP], for each window of the context, as in the released `run_squad.py`.

    else_none: whether a window without the answer says so, with [CLS] as its answer, or teaches nothing.

    A window begins every half of its size. An answer may start at each token of the context in one window alone: in
    that which has most around it. The question is cut where it takes more than half of the room.
    """
    room = max_length - 3
    asked = tokenizer.token_ids(row["question"])
    context, places = located_pieces(row["context"], tokenizer)
    places = _with_marks(row["context"], places)
    question = asked[: max(room // 2, room - len(context))]
    before, size = len(question) + 2, room - len(question)
    answer: list[int] = []  # the tokens of the context that are in the answer
    if "answer" in row:
        first, end = row["answer_start"], row["answer_start"] + len(row["answer"])
        answer = [i for i, place in enumerate(places) if place[0] < end and place[1] > first]
    step = max(1, size // 2)
    begins = range(0, max(0, len(context) - size) + step, step) if size else range(1)
    windows = []
    for begin in begins:
        end = min(begin + size, len(context))
        ids = [*context[begin:end], tokenizer.sep_token_id]
        shift = before - begin  # from a place in the context to one among the tokens
        targets: dict[str, int | float | list[int]] = {}
        if "answer" in row:
            whole = bool(answer) and begin <= answer[0] and answer[-1] < end
            elsewhere = 0 if else_none else OUTSIDE
            targets = {
                "start_positions": shift + answer[0] if whole else elsewhere,
                "end_positions": shift + answer[-1] if whole else elsewhere,
            }
        margin = (size - step) // 2  # half of what two windows share
        own = range(
            shift + begin + (margin if begin else 0),
            shift + (end if begin == begins[-1] else begin + step + margin),
        )
        windows.append(
            Features(
                [tokenizer.cls_token_id, *question, tokenizer.sep_token_id, *ids],
                [0] * before + [1] * len(ids),
                targets,
                [None] * before + places[begin:end] + [None],
                own,
            )
        )
    return windows, len(question) == len(asked)


def _of_words(
    row: Row, tokenizer: WordPieceTokenizer, max_length: int, numbers: dict[str, int]
) -> tuple[list[Features], bool]:
    """[CLS] words [SEP]: the first piece of a word carries its tag. A word without a piece is [UNK]."""
    ids, places, labels = [tokenizer.cls_token_id], [], [IGNORED]
    tags = [numbers[tag] for tag in row["tags"]] if "tags" in row else [IGNORED] * len(row["tokens"])
    whole = True
    for word, tag in zip(row["tokens"], tags, strict=True):
        pieces = tokenizer.token_ids(word) or [tokenizer.unk_token_id]
        if len(ids) + len(pieces) + 1 > max_length:
            whole = False
            break
        places.append(len(ids))
        ids += pieces
        labels += [tag] + [IGNORED] * (len(pieces) - 1)
    targets: dict[str, Any] = {"labels": [*labels, IGNORED]} if "tags" in row else {}
    return [Features([*ids, tokenizer.sep_token_id], [0] * (len(ids) + 1), targets, places)], whole


# --- Which characters a piece stands for -----------------------------------------------------------------


def located_pieces(text: str, tokenizer: WordPieceTokenizer) -> tuple[list[int], list[Place]]:
    """The ids of a text, without [CLS] and [SEP], and for each the characters of the text that it stands for.

    What reading drops, such as accents and controls, belongs to a piece only within it; what it takes apart,
    such as a syllable of Hangul, belongs to each of its pieces. Source: the offsets of `tokenizers`.
    """
    ids: list[int] = []
    places: list[Place] = []
    start = 0
    for part in SPECIAL_TOKEN.split(text):
        if part in SPECIAL_TOKENS:
            ids += tokenizer.token_ids(part)
            places.append((start, start + len(part)))
        else:
            spelled, places_of = normalize(part, **tokenizer.spelling), origins(part, **tokenizer.spelling)
            for first, end in word_places(spelled):
                pieces = tokenizer.word_ids(spelled[first:end])
                ids += pieces
                for a, b in _within(pieces, end - first, tokenizer):
                    places.append((start + places_of[first + a], start + places_of[first + b - 1] + 1))
        start += len(part)
    return ids, places


def _within(pieces: Sequence[int], size: int, tokenizer: WordPieceTokenizer) -> Iterator[Place]:
    """Which characters of a word of this size its pieces are; [UNK] is all of them."""
    start = 0
    for number, piece in enumerate(pieces):
        end = start + len(tokenizer.vocab[piece]) - (len(CONTINUES) if number else 0)
        yield (start, end) if len(pieces) > 1 else (0, size)
        start = end


def _with_marks(text: str, places: list[Place]) -> list[Place]:
    """The places of pieces, each with the marks behind it that are no piece's: the accent of an é in two characters."""
    wider = []
    for (start, end), (following, _) in zip(places, [*places, (len(text), 0)][1:], strict=True):
        while end < following and unicodedata.category(text[end]).startswith("M"):
            end += 1
        wider.append((start, end))
    return wider


# --- Batches ---------------------------------------------------------------------------------------------


def pad(features: Sequence[Features], pad_token_id: int) -> Batch:
    """Examples as a batch as long as the longest: input_ids, attention_mask, token_type_ids (B, T), and targets."""
    shape = (len(features), max(len(one.input_ids) for one in features))
    batch = {
        "input_ids": np.full(shape, pad_token_id, np.int64),
        "attention_mask": np.zeros(shape, np.int64),
        "token_type_ids": np.zeros(shape, np.int64),
    }
    for row, one in enumerate(features):
        size = len(one.input_ids)
        batch["input_ids"][row, :size] = one.input_ids
        batch["attention_mask"][row, :size] = 1
        batch["token_type_ids"][row, :size] = one.token_type_ids
    for name, first in features[0].targets.items():
        if isinstance(first, list):
            batch[name] = np.full(shape, IGNORED, np.int64)
            for row, one in enumerate(features):
                batch[name][row, : len(one.input_ids)] = one.targets[name]
        else:
            batch[name] = np.array([one.targets[name] for one in features])
    return batch


class TaskData(Epochs):
    """Endless batches: each epoch has each example once, in an order of its own, and a smaller last batch."""

    def __init__(self, features: list[Features], batch_size: int, seed: int, pad_token_id: int) -> None:
        self.features, self.batch_size, self.seed = features, batch_size, seed
        self.pad_token_id = pad_token_id
        super().__init__()

    def begin_epoch(self) -> None:
        """Draw the order."""
        self._order = np.random.default_rng([self.seed, 4, self.epoch]).permutation(len(self.features))
        self.batches_per_epoch = -(-len(self.features) // self.batch_size)

    def batch_at(self, index: int) -> Batch:
        """The examples of a batch, padded."""
        start = index * self.batch_size
        chosen = self._order[start : start + self.batch_size]
        return pad([self.features[i] for i in chosen], self.pad_token_id)
