"""Any model as files: their names, its tokenizer's, and how they are read again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from minigrad.files import write_atomic
from minigrad.messages import quoted, shown
from minigrad.text.normalization import WHITE_SPACE, lower
from minigrad.text.tokenizer import WordPieceTokenizer, pieces_of
from minigrad.text.wordpiece import CLS, CONTINUES, LONGEST_WORD, MASK, PAD, SEP, SPECIAL_TOKENS, UNK
from minigrad.training.reading import SUMS, CheckpointError, checksums, is_there, read_file, read_json

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
VOCABULARY, TOKENIZER, FAST_TOKENIZER = "vocab.txt", "tokenizer_config.json", "tokenizer.json"

# How tokenizer_config.json names a tokenizer that may be BERT's; the second two are transformers' names for whatever
# is in tokenizer.json, before version 5 and since.
BERT_CLASSES = (None, "BertTokenizer", "BertTokenizerFast")
FILE_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")

# More numbers than this that a checkpoint lacks, and than it has, are those of a config.json that fills the memory.
MOST_INITIALISED = 10_000_000


@dataclass
class Pretrained:
    """A model from a checkpoint, its tokenizer (None if there is no vocabulary), and what was left out.

    missing: the weights that were not there, and stayed as initialised.
    """

    model: Any
    tokenizer: WordPieceTokenizer | None
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def write_checkpoint(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a checkpoint, by name, one after the other, and their sums. Raises SaveError."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomic(folder / name, content)
    (folder / INDEX).unlink(missing_ok=True)
    write_atomic(folder / SUMS, checksums(files))


def json_file(values: object) -> bytes:
    """The content of a JSON file."""
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def tokenizer_files(tokenizer: WordPieceTokenizer, max_length: int | None) -> dict[str, bytes]:
    """The files of a tokenizer by name; max_length: how many tokens its model takes at most.

    Raises ValueError for one that `transformers` would read as another.
    """
    if tokenizer.max_input_chars_per_word != LONGEST_WORD:
        raise ValueError(
            f"max_input_chars_per_word is {tokenizer.max_input_chars_per_word}: a tokenizer is saved with "
            f"{LONGEST_WORD} only, because {TOKENIZER} has no place for another"
        )
    options = {
        "tokenizer_class": "BertTokenizer",
        **{theirs: getattr(tokenizer, ours) for ours, theirs, _, _ in SPELLING},
        "model_max_length": max_length,
    }
    return {VOCABULARY: tokenizer.vocab_txt(), TOKENIZER: json_file(options)}


# --- Reading a tokenizer ---------------------------------------------------------------------------------

# What may be chosen: its name here, in tokenizer_config.json and in the normalizer of tokenizer.json; what BERT does
# where neither says it.
SPELLING = (
    ("lower_case", "do_lower_case", "lowercase", True),
    ("strip_accents", "strip_accents", "strip_accents", None),
    ("tokenize_chinese_chars", "tokenize_chinese_chars", "handle_chinese_chars", True),
)

# What may stand in tokenizer_config.json beside that without another reading of texts.
EXPECTED_OPTIONS: dict[str, tuple[Any, ...]] = {
    "auto_map": (None,),
    "do_basic_tokenize": (True, None),
    "never_split": (None, []),
    "clean_text": (True,),
    "word_tokenizer_type": (None, "basic"),
    "subword_tokenizer_type": (None, "wordpiece"),
    "wordpieces_prefix": (CONTINUES,),
    "max_input_chars_per_word": (LONGEST_WORD,),
    "split_special_tokens": (False, None),
    "padding_side": ("right", None),
    "truncation_side": ("right", None),
    "truncation_strategy": ("longest_first", None),
    "pad_token_type_id": (0, None),
    "add_bos_token": (False, None),
    "add_eos_token": (False, None),
}

# The same of tokenizer.json, by its parts.
EXPECTED_PARTS: dict[str, dict[str, tuple[Any, ...]]] = {
    "model": {
        "unk_token": (UNK,),
        "continuing_subword_prefix": (CONTINUES,),
        "max_input_chars_per_word": (LONGEST_WORD,),
    },
    "normalizer": {"type": ("BertNormalizer",), "clean_text": (True,)},
    "pre_tokenizer": {"type": ("BertPreTokenizer",)},
    "truncation": {"direction": ("Right",), "strategy": ("LongestFirst",)},
    "padding": {"direction": ("Right",), "pad_token": (PAD,), "pad_type_id": (0,)},
}

NAMED_TOKENS = {"unk_token": UNK, "pad_token": PAD, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}


def read_tokenizer(
    folder: Path, vocab_size: int, notes: list[str] | None = None
) -> WordPieceTokenizer | None:
    """The tokenizer of the vocabulary in `folder`, or None if there is none. Raises CheckpointError.

    The vocabulary is in `vocab.txt`, or in the `tokenizer.json` that newer versions of transformers write.
    How a text is read is set in `tokenizer_config.json`, `tokenizer.json` or both: where they differ, and
    where this tokenizer does not do what they set, it is refused. notes: gets a line for each thing worth
    knowing.
    """
    notes = [] if notes is None else notes
    options = _read_options(folder)
    plain, fast = folder / VOCABULARY, folder / FAST_TOKENIZER
    is_plain, is_fast = is_there(plain), is_there(fast)
    if not is_plain and not is_fast:
        return None
    path = plain if is_plain else fast
    values = read_json(fast) if is_fast else {}
    try:
        in_fast = _fast_vocabulary(values) if is_fast else {}
        pieces = pieces_of(read_file(plain)) if is_plain else _in_order_of_ids(in_fast, vocab_size)
        tokenizer = WordPieceTokenizer(pieces, **_spelling(folder, options, values.get("normalizer")))
        tokenizer.vocab_txt()  # raises UnicodeEncodeError for half of a surrogate pair, which JSON can have
    except ValueError as error:
        raise CheckpointError(f"{path} holds no vocabulary of WordPiece: {shown(str(error))}") from None
    if tokenizer.vocab_size > vocab_size:
        raise CheckpointError(f"{path} has {tokenizer.vocab_size} pieces, the model only {vocab_size}")
    if is_plain and is_fast:
        _require_one_vocabulary(folder, tokenizer, in_fast)
    if is_fast:
        _require_bert(fast, values, tokenizer, notes)
    named = _special_tokens(folder, options, values.get("added_tokens"), tokenizer)
    if (
        is_fast
        and options.get("tokenizer_class") in (None, *FILE_CLASSES)
        and len(named) < len(SPECIAL_TOKENS)
    ):
        others = ", ".join(token for token in SPECIAL_TOKENS if token not in named)
        notes.append(f"{folder} does not name {others} as special tokens; here they are, also within a text")
    notes += _capitals(path, tokenizer)
    return tokenizer


def _read_options(folder: Path) -> dict[str, Any]:
    """What stands in tokenizer_config.json, none of which asks for another tokenizer than BERT's."""
    path = folder / TOKENIZER
    options = read_json(path) if is_there(path) else {}
    if options.get("tokenizer_class") is None and is_there(folder / CONFIG):  # then transformers looks there
        path, name = folder / CONFIG, read_json(folder / CONFIG).get("tokenizer_class")
    else:
        name = options.get("tokenizer_class")
    if name not in (*BERT_CLASSES, *FILE_CLASSES):
        raise CheckpointError(f"{path}: tokenizer_class is {quoted(name)}, expected BertTokenizer")
    for key, allowed in EXPECTED_OPTIONS.items():
        _require(folder / TOKENIZER, key, options.get(key, allowed[0]), allowed)
    return options


def _require(path: Path, what: str, value: object, allowed: tuple[Any, ...]) -> None:
    """Raise CheckpointError for a value by which a text would be read as it is not here."""
    if value not in allowed:
        _refuse(path, what, value, repr(allowed[0]))


def _refuse(path: Path, what: str, value: object, expected: str) -> NoReturn:
    raise CheckpointError(
        f"{path}: {what} is {quoted(value)}, which this tokenizer does not do; expected {expected}"
    )


def _spelling(folder: Path, options: dict[str, Any], normalizer: object) -> dict[str, Any]:
    """lower_case, strip_accents and tokenize_chinese_chars, from the file that speaks of each."""
    if not isinstance(normalizer, dict):
        normalizer = {}
    spelling: dict[str, Any] = {}
    for ours, in_options, in_fast, default in SPELLING:
        said = {}
        for path, key, values in (
            (folder / TOKENIZER, in_options, options),
            (folder / FAST_TOKENIZER, in_fast, normalizer),
        ):
            if key in values:
                said[f"{path}: {key}"] = values[key]
                if not isinstance(values[key], bool) and (values[key] is not None or default is not None):
                    expected = "true or false" if default is not None else "true, false or null"
                    raise CheckpointError(f"{path}: {key} must be {expected}, got {quoted(values[key])}")
        meant = [spelling["lower_case"] if value is None else value for value in said.values()]
        if len(set(meant)) > 1:
            differing = ", ".join(f"{where} is {value}" for where, value in said.items())
            raise CheckpointError(f"the two files of the tokenizer differ: {differing}")
        spelling[ours] = next(iter(said.values()), default)
    return spelling


def _fast_vocabulary(values: dict[str, Any]) -> dict[str, int]:
    """The pieces and their ids in a tokenizer.json. Raises ValueError."""
    model = values.get("model")
    if not isinstance(model, dict):
        raise ValueError("it has no model")
    kind = model.get("type", "BPE" if "merges" in model else "WordPiece")  # old ones do not say
    if kind != "WordPiece":
        raise ValueError(f"its model is {quoted(kind)}")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict):
        raise ValueError("its model has no vocab that maps pieces to ids")
    for piece, number in vocabulary.items():
        if type(number) is not int:
            raise ValueError(f"ids must be integers, {quoted(piece)} has {quoted(number)}")
    return vocabulary


def _in_order_of_ids(vocabulary: dict[str, int], vocab_size: int) -> list[str]:
    """The pieces by id. An id without one, as of a piece that a vocab.txt had twice, gets "". Raises ValueError."""
    pieces = [""] * min(vocab_size, max(vocabulary.values(), default=-1) + 1)
    for piece, number in vocabulary.items():
        if not 0 <= number < vocab_size:
            raise ValueError(f"ids must be below {vocab_size}, as in the model, {quoted(piece)} has {number}")
        if pieces[number]:
            raise ValueError(f"{quoted(pieces[number])} and {quoted(piece)} both have id {number}")
        pieces[number] = piece
    return pieces


def _require_one_vocabulary(folder: Path, tokenizer: WordPieceTokenizer, in_fast: dict[str, int]) -> None:
    """Raise CheckpointError where vocab.txt and tokenizer.json give a piece two ids."""
    in_fast = {piece.rstrip(WHITE_SPACE): number for piece, number in in_fast.items()}
    for piece in dict.fromkeys([*tokenizer.vocab, *in_fast]):
        first, second = tokenizer.token_to_id(piece), in_fast.get(piece)
        if piece and first != second:
            raise CheckpointError(
                f"{folder / VOCABULARY} and {FAST_TOKENIZER} differ: the id of {quoted(piece)} is {first} in the one, "
                f"{second} in the other"
            )


def _special_tokens(
    folder: Path, options: dict[str, Any], added: object, tokenizer: WordPieceTokenizer
) -> set[str]:
    """Which of the five special tokens are named as such. Raises CheckpointError for any others.

    added: those of tokenizer.json.
    """
    named: set[str] = set()

    def look_at(path: Path, what: str, token: Any, number: Any = None, expected: str | None = None) -> None:
        """A token as a text, or as an object that says what is looked for around it."""
        fields = token if isinstance(token, dict) else {"content": token}
        content = fields.get("content")
        if content not in SPECIAL_TOKENS or content != (expected or content):
            one = expected or f"one of {', '.join(SPECIAL_TOKENS)}"
            raise CheckpointError(
                f"{path}: {what} has {quoted(content)}, which is no special token here; expected {one}"
            )
        for key in ("lstrip", "rstrip", "single_word", "normalized"):
            _require(path, f"{key} of {content}", fields.get(key, False), (False,))
        _require(path, f"the id of {content}", number, (tokenizer.token_to_id(content), None))
        named.add(content)

    for name in (TOKENIZER, "special_tokens_map.json"):
        path = folder / name
        stored = options if name == TOKENIZER else read_json(path) if is_there(path) else {}
        for key, value in stored.items():
            if key in NAMED_TOKENS or (key.endswith("_token") and isinstance(value, str | dict)):
                look_at(path, key, value, expected=NAMED_TOKENS.get(key))
            elif key in ("additional_special_tokens", "extra_special_tokens"):
                for token in value.values() if isinstance(value, dict) else _list_of(path, key, value):
                    look_at(path, key, token)
            elif key == "added_tokens_decoder" and isinstance(value, dict):
                for number, token in value.items():
                    look_at(path, key, token, int(number) if number.isdecimal() else number)
    path = folder / "added_tokens.json"
    for token, number in (read_json(path) if is_there(path) else {}).items():
        look_at(path, "it", token, number)
    path = folder / FAST_TOKENIZER
    for token in _list_of(path, "added_tokens", added):
        look_at(path, "added_tokens", token, token.get("id") if isinstance(token, dict) else None)
    return named


def _list_of(path: Path, what: str, values: object) -> list[Any]:
    if not isinstance(values, list | None):
        raise CheckpointError(f"{path}: {what} must be a list, got {quoted(values)}")
    return values or []


def _require_bert(
    path: Path, values: dict[str, Any], tokenizer: WordPieceTokenizer, notes: list[str]
) -> None:
    """Raise CheckpointError for a tokenizer.json that reads a text as this tokenizer does not."""
    for part, expected in EXPECTED_PARTS.items():
        found = values.get(part)
        if found is None and "type" not in expected:  # no truncation, no padding
            continue
        if not isinstance(found, dict):
            _refuse(path, part, found, expected.get("type", ["an object"])[0])
        for key, allowed in expected.items():
            _require(path, f"{key} of {part}", found.get(key, allowed[0]), allowed)
    around = values.get("post_processor")
    ids = {token: tokenizer.token_to_id(token) for token in (CLS, SEP)}
    if around in (None, _template("A:0", "A:0 B:1", {})):
        notes.append(
            f"{path} does not say what stands around a text: here it is [CLS] text [SEP], as for BERT"
        )
    elif around not in (
        _template("[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1", ids),
        {"type": "BertProcessing", "sep": [SEP, ids[SEP]], "cls": [CLS, ids[CLS]]},
    ):
        _refuse(
            path, "post_processor", around, "[CLS] text [SEP], and for a pair [CLS] text [SEP] pair [SEP]"
        )


def _template(single: str, pair: str, ids: Mapping[str, int | None]) -> dict[str, Any]:
    """A post-processor of tokenizer.json that writes a text, or two, as in "[CLS]:0 A:0", each with its segment."""

    def parts(text: str) -> list[dict[str, Any]]:
        named = [part.split(":") for part in text.split()]
        return [
            {"SpecialToken" if name in ids else "Sequence": {"id": name, "type_id": int(segment)}}
            for name, segment in named
        ]

    tokens = {token: {"id": token, "ids": [number], "tokens": [token]} for token, number in ids.items()}
    return {
        "type": "TemplateProcessing",
        "single": parts(single),
        "pair": parts(pair),
        "special_tokens": tokens,
    }


def _capitals(path: Path, tokenizer: WordPieceTokenizer) -> Iterator[str]:
    """A note, if a text is read in lower case and many pieces have capitals."""
    words = [piece for piece in tokenizer.vocab if not (piece.startswith("[") and piece.endswith("]"))]
    capitals = sum(lower(piece) != piece for piece in words)
    if tokenizer.lower_case and 10 * capitals > len(words):
        yield (
            f"{capitals} of the {len(words)} pieces in {path} have capitals, but a text is read in lower case, so they "
            f'never occur: if the model is a cased one, write {{"do_lower_case": false}} into {TOKENIZER}'
        )


def listed(names: list[str]) -> str:
    """The names with commas between them; of many, the first five and how many more there are."""
    first = ", ".join(shown(name, 80) for name in names[:5])
    return first if len(names) <= 5 else f"{first} and {len(names) - 5} more"
