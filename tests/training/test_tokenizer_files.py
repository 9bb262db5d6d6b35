"""Tokenizers as transformers and tokenizers save them: the same ids, or an error that says what is not done here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS
from minigrad.training.pretrained import read_tokenizer, tokenizer_files
from minigrad.training.reading import CheckpointError

pytestmark = pytest.mark.no_arrays

LETTERS = "aeotu xyThA é É z 中 文 ' , _ [ ] < > # 1 @ 한 ａ"
PIECES = [*SPECIAL_TOKENS, *dict.fromkeys(LETTERS.replace(" ", "")), "the", "The", "cafe", "café", "don"]
PIECES += ["##" + piece for piece in PIECES[5:]]
TEXTS = [
    "The Array café CAFÉ caf\u00e9 cafe\u0301",
    "中文 a中文b",
    "x_y don't [x] <e1> the<e1>a",
    "[MASK] [mask] a[MASK]b [SEP] ｔｈｅ ａ",
    "the\u200bthe a\x00b  the\u3000a \x85 한",
    "a" * 7 + " " + "the" * 40 + " a",
    "",
]


def write(folder: Path, name: str, values: object) -> None:
    (folder / name).write_text(json.dumps(values), "utf-8")


def added(content: str, number: int, **flags) -> dict:
    flags = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
        **flags,
    }
    return {"id": number, "content": content, **flags}


def template(*names: str) -> list[dict]:
    """Such as "[CLS]:0", "A:0"."""
    parts = [name.split(":") for name in names]
    return [
        {"Sequence" if name in "AB" else "SpecialToken": {"id": name, "type_id": int(segment)}}
        for name, segment in parts
    ]


def fast(**changes) -> dict:
    """A tokenizer.json of BERT, cased; changes: of its parts, as "normalizer__lowercase" or "normalizer"."""
    ids = {piece: i for i, piece in enumerate(PIECES)}
    values: dict = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(token, ids[token]) for token in SPECIAL_TOKENS],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": False,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template("[CLS]:0", "A:0", "[SEP]:0"),
            "pair": template("[CLS]:0", "A:0", "[SEP]:0", "B:1", "[SEP]:1"),
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }
    for name, value in changes.items():
        part, _, key = name.partition("__")
        if key:
            values[part][key] = value
        else:
            values[part] = value
    return values


def saved(folder: Path, options: dict | None = None, **changes) -> Path:
    """A folder with that tokenizer.json, and a tokenizer_config.json with these options."""
    write(folder, "tokenizer.json", fast(**changes))
    if options is not None:
        write(folder, "tokenizer_config.json", options)
    return folder


# --- tokenizer.json speaks -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "BertTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"])
def test_where_the_options_are_silent_the_file_decides(tmp_path, name):
    notes: list[str] = []
    read = read_tokenizer(saved(tmp_path, {"tokenizer_class": name}), 1000, notes)
    assert read.tokenize("The café") == ["The", "café"]
    assert notes == []
    read = read_tokenizer(saved(tmp_path, normalizer__lowercase=True, normalizer__strip_accents=False), 1000)
    assert read.tokenize("The Café") == ["the", "café"]
    assert read_tokenizer(saved(tmp_path, normalizer__handle_chinese_chars=False), 1000).tokenize("中文") == [
        "中",
        "##文",
    ]


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({"do_lower_case": True}, {}),
        ({"do_lower_case": False}, {"normalizer__lowercase": True}),
        ({"strip_accents": True}, {}),
        ({"strip_accents": None}, {"normalizer__strip_accents": True}),
        ({"tokenize_chinese_chars": False}, {}),
        ({"tokenize_chinese_chars": True}, {"normalizer__handle_chinese_chars": False}),
    ],
)
def test_two_files_that_differ_are_refused(tmp_path, options, changes):
    with pytest.raises(
        CheckpointError, match=rf"differ: \S+ {next(iter(options))} is \w+, \S+tokenizer.json: "
    ):
        read_tokenizer(saved(tmp_path, options, **changes), 1000)


def test_two_files_that_mean_the_same_are_read(tmp_path):
    options = {"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": True}
    assert read_tokenizer(saved(tmp_path, options), 1000).tokenize("É The") == ["É", "The"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalizer": None}, "normalizer is None"),
        ({"normalizer": {"type": "Lowercase"}}, "type of normalizer is 'Lowercase'"),
        ({"normalizer": "BertNormalizer"}, "normalizer is 'BertNormalizer'"),
        ({"normalizer__clean_text": False}, "clean_text of normalizer is False"),
        ({"normalizer__lowercase": "yes"}, "lowercase must be true or false, got 'yes'"),
        ({"normalizer__strip_accents": 1}, "strip_accents must be true, false or null, got 1"),
        ({"pre_tokenizer": None}, "pre_tokenizer is None"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "type of pre_tokenizer is 'Whitespace'"),
        ({"model__continuing_subword_prefix": "@@"}, "continuing_subword_prefix of model is '@@'"),
        ({"model__max_input_chars_per_word": 5}, "max_input_chars_per_word of model is 5"),
        ({"model__max_input_chars_per_word": 1000}, "max_input_chars_per_word of model is 1000"),
        ({"model__unk_token": "a"}, "unk_token of model is 'a'"),
        ({"added_tokens": [added("<e1>", 300)]}, "added_tokens has '<e1>'"),
        ({"added_tokens": [added("the", PIECES.index("the"), special=False)]}, "added_tokens has 'the'"),
        ({"added_tokens": [added("[MASK]", 4, lstrip=True)]}, r"lstrip of \[MASK\] is True"),
        ({"added_tokens": [added("[MASK]", 4, rstrip=True)]}, r"rstrip of \[MASK\] is True"),
        ({"added_tokens": [added("[MASK]", 4, single_word=True)]}, r"single_word of \[MASK\] is True"),
        ({"added_tokens": [added("[MASK]", 4, normalized=True)]}, r"normalized of \[MASK\] is True"),
        ({"added_tokens": [added("[MASK]", 3)]}, r"the id of \[MASK\] is 3"),
        ({"added_tokens": {}}, "added_tokens must be a list"),
        ({"added_tokens": [3]}, "added_tokens has 3"),
        ({"post_processor__single": template("[CLS]:0", "A:0")}, "post_processor is .*expected .CLS. text .SEP."),
        ({"post_processor__pair": template("[CLS]:0", "A:0", "[SEP]:0", "B:0", "[SEP]:0")}, "post_processor is"),
        ({"post_processor": {"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}}, "post_processor"),
        ({"post_processor": {"type": "BertProcessing", "sep": ["[CLS]", 2], "cls": ["[SEP]", 3]}}, "post_processor"),
        ({"truncation": {"max_length": 9, "strategy": "OnlyFirst", "direction": "Right", "stride": 0}}, "strategy of"),
        ({"truncation": {"max_length": 9, "strategy": "LongestFirst", "direction": "Left"}}, "direction of truncation"),
        ({"padding": {"strategy": "BatchLongest", "direction": "Left"}}, "direction of padding is 'Left'"),
        ({"padding": {"direction": "Right", "pad_type_id": 1}}, "pad_type_id of padding is 1"),
    ],
)  # fmt: skip
def test_what_this_tokenizer_does_not_do_is_refused(tmp_path, changes, message):
    with pytest.raises(CheckpointError, match=rf"tokenizer\.json: {message}") as refused:
        read_tokenizer(saved(tmp_path, **changes), 1000)
    assert "expected" in str(refused.value) or "must be" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"post_processor": None}, "does not say what stands around a text: here it is [CLS] text [SEP]"),
        ({"added_tokens": []}, "does not name [PAD], [UNK], [CLS], [SEP], [MASK] as special tokens"),
    ],
)
@pytest.mark.parametrize("options", [None, {"tokenizer_class": "TokenizersBackend"}])
def test_what_the_file_leaves_open_is_said(tmp_path, changes, note, options):
    notes: list[str] = []
    read_tokenizer(saved(tmp_path, options, **changes), 1000, notes)
    assert len(notes) == 1
    assert note in notes[0]


def test_lengths_that_the_file_cuts_and_pads_to_are_the_caller_s(tmp_path):
    cut = {"max_length": 128, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": {"Fixed": 128}, "direction": "Right", "pad_id": 0, "pad_token": "[PAD]"}
    read = read_tokenizer(saved(tmp_path, truncation=cut, padding=padding), 1000)
    assert len(read.encode("The The")) == 4


# --- tokenizer_config.json and its companions speak ------------------------------------------------------


@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"do_basic_tokenize": False}, "do_basic_tokenize is False"),
        ({"never_split": ["The"]}, r"never_split is \['The'\]"),
        ({"clean_text": False}, "clean_text is False"),
        ({"word_tokenizer_type": "mecab"}, "word_tokenizer_type is 'mecab'"),
        ({"subword_tokenizer_type": "character"}, "subword_tokenizer_type is 'character'"),
        ({"wordpieces_prefix": "@@"}, "wordpieces_prefix is '@@'"),
        ({"split_special_tokens": True}, "split_special_tokens is True"),
        ({"padding_side": "left"}, "padding_side is 'left'"),
        ({"truncation_side": "left"}, "truncation_side is 'left'"),
        ({"auto_map": {"AutoTokenizer": ["own.Tokenizer", None]}}, "auto_map is"),
        ({"unk_token": "<unk>"}, r"unk_token has '<unk>'.* expected \[UNK\]"),
        ({"mask_token": "[PAD]"}, r"mask_token has '\[PAD\]'.* expected \[MASK\]"),
        ({"pad_token": {"content": "the", "lstrip": False}}, "pad_token has 'the'"),
        ({"mask_token": {"content": "[MASK]", "lstrip": True}}, r"lstrip of \[MASK\] is True"),
        ({"mask_token": None}, "mask_token has None"),
        ({"bos_token": "<s>"}, "bos_token has '<s>'"),
        ({"additional_special_tokens": ["<e1>"]}, "additional_special_tokens has '<e1>'"),
        ({"extra_special_tokens": {"entity_token": "<e1>"}}, "extra_special_tokens has '<e1>'"),
        ({"additional_special_tokens": 3}, "additional_special_tokens must be a list, got 3"),
        ({"added_tokens_decoder": {"200": added("<e1>", 200)}}, "added_tokens_decoder has '<e1>'"),
        ({"added_tokens_decoder": {"200": added("[MASK]", 4)}}, r"the id of \[MASK\] is 200"),
    ],
)  # fmt: skip
def test_options_by_which_a_text_would_be_read_otherwise_are_refused(tmp_path, options, message, is_fast):
    if is_fast:
        saved(tmp_path)
    else:
        (tmp_path / "vocab.txt").write_text("\n".join(PIECES), "utf-8")
    write(tmp_path, "tokenizer_config.json", options)
    with pytest.raises(CheckpointError, match=rf"tokenizer_config\.json: {message}"):
        read_tokenizer(tmp_path, 1000)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("special_tokens_map.json", {"unk_token": "<unk>"}, "unk_token has '<unk>'"),
        ("special_tokens_map.json", {"additional_special_tokens": ["<e1>"]}, "additional_special_tokens has"),
        ("added_tokens.json", {"<e1>": 300}, "it has '<e1>'"),
        ("added_tokens.json", {"[MASK]": 300}, r"the id of \[MASK\] is 300"),
        ("config.json", {"tokenizer_class": "BertJapaneseTokenizer"}, "tokenizer_class is 'BertJapaneseTokenizer'"),
    ],
)  # fmt: skip
def test_companions_are_read_too(tmp_path, name, values, message):
    write(saved(tmp_path, {}), name, values)
    with pytest.raises(CheckpointError, match=rf"{name}: {message}"):
        read_tokenizer(tmp_path, 1000)


def test_the_options_of_published_ones_are_no_hindrance(tmp_path):
    """Those of all-MiniLM-L6-v2 and of what transformers 4 writes."""
    names = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]"}
    options = {
        **names,
        "mask_token": {"content": "[MASK]", "lstrip": False, "normalized": False, "__type": "AddedToken"},
        "do_lower_case": False,
        "do_basic_tokenize": True,
        "never_split": None,
        "tokenize_chinese_chars": True,
        "strip_accents": None,
        "model_max_length": 512,
        "name_or_path": "somebody/something",
        "special_tokens_map_file": None,
        "clean_up_tokenization_spaces": True,
        "added_tokens_decoder": {str(i): added(token, i) for i, token in enumerate(SPECIAL_TOKENS)},
        "additional_special_tokens": [],
        "extra_special_tokens": {},
        "tokenizer_class": "BertTokenizer",
    }
    write(saved(tmp_path, options), "special_tokens_map.json", {**names, "mask_token": "[MASK]"})
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), "utf-8")
    notes: list[str] = []
    assert read_tokenizer(tmp_path, 1000, notes).tokenize("The") == ["The"]
    assert notes == []


def test_a_cased_vocabulary_that_is_read_in_lower_case_is_said(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS, "The", "Us", "the", "##X"]), "utf-8")
    notes: list[str] = []
    read_tokenizer(tmp_path, 1000, notes)
    assert len(notes) == 1
    assert notes[0].startswith(f"3 of the 4 pieces in {path} have capitals")
    assert '"do_lower_case": false' in notes[0]
    for options in ({"do_lower_case": False}, {"do_lower_case": True}):
        write(tmp_path, "tokenizer_config.json", options)
        notes = []
        read_tokenizer(tmp_path, 1000, notes)
        assert bool(notes) == options["do_lower_case"]
    (tmp_path / "tokenizer_config.json").unlink()
    path.write_text("\n".join([*SPECIAL_TOKENS, "[unused1]", "[unused2]", "the", "us"]), "utf-8")
    notes = []
    read_tokenizer(tmp_path, 1000, notes)
    assert notes == []


# --- The vocabulary --------------------------------------------------------------------------------------


def test_a_vocabulary_that_stands_in_two_files_is_one(tmp_path):
    saved(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    assert read_tokenizer(tmp_path, 1000).vocab == PIECES
    for other in ([*PIECES[:-1], "##other"], [*PIECES, "more"], PIECES[:-1], [*PIECES[:5], *PIECES[:4:-1]]):
        (tmp_path / "vocab.txt").write_text("\n".join(other) + "\n", "utf-8")
        with pytest.raises(CheckpointError, match=r"vocab\.txt and tokenizer\.json differ: the id of "):
            read_tokenizer(tmp_path, 1000)


def test_ids_without_a_piece(tmp_path):
    ids = {**{token: i for i, token in enumerate(SPECIAL_TOKENS)}, "a": 7, "##b": 9}
    read = read_tokenizer(saved(tmp_path, model__vocab=ids), 10)
    assert read.token_ids("ab") == [7, 9]
    assert read.vocab_size == 10
    for wrong in (
        {**ids, "c": 10},
        {**ids, "c": 10**12},
        {**ids, "c": -1},
        {**ids, "c": 9},
        {**ids, "c": True},
    ):
        with pytest.raises(CheckpointError, match="holds no vocabulary of WordPiece: "):
            read_tokenizer(saved(tmp_path, model__vocab=wrong), 10)


def test_what_is_saved_is_read_again(tmp_path):
    for lower_case, strip_accents, chinese in [
        (True, None, True),
        (False, True, False),
        (True, False, False),
    ]:
        mine = WordPieceTokenizer(PIECES, lower_case, strip_accents, tokenize_chinese_chars=chinese)
        for name, content in tokenizer_files(mine, 64).items():
            (tmp_path / name).write_bytes(content)
        assert read_tokenizer(tmp_path, 1000).fingerprint() == mine.fingerprint()
    with pytest.raises(ValueError, match="max_input_chars_per_word is 7: a tokenizer is saved with 100 only"):
        tokenizer_files(WordPieceTokenizer(PIECES, max_input_chars_per_word=7), 64)


# --- Held against the oracles ----------------------------------------------------------------------------


def assert_same_ids(folder: Path, expected) -> bool:
    """Hold the ids of texts against another tokenizer's, if the folder is not refused; says whether it is not."""
    try:
        read = read_tokenizer(folder, 10_000)
    except CheckpointError:
        return False
    for text in TEXTS:
        assert read.token_ids(text) == expected(text), text
    return True


SWITCHES = [
    (lower, strip, chinese)
    for lower in (True, False)
    for strip in (None, True, False)
    for chinese in (True, False)
]


@pytest.mark.oracle
@pytest.mark.parametrize(("lower", "strip", "chinese"), SWITCHES)
@pytest.mark.parametrize("kind", ["bert", "file", "tokenizers"])
def test_tokenizers_that_are_saved_elsewhere(tmp_path, tokenizers, kind, lower, strip, chinese):
    transformers = pytest.importorskip("transformers")
    changes = {"lowercase": lower, "strip_accents": strip, "handle_chinese_chars": chinese}
    values = fast(**{f"normalizer__{name}": value for name, value in changes.items()})
    theirs = tokenizers.Tokenizer.from_str(json.dumps(values))
    if kind == "bert":
        ids = {piece: i for i, piece in enumerate(PIECES)}
        options = {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": chinese}
        transformers.BertTokenizer(vocab=ids, **options).save_pretrained(tmp_path)
    elif kind == "file":
        transformers.PreTrainedTokenizerFast(tokenizer_object=theirs, unk_token="[UNK]").save_pretrained(
            tmp_path
        )
    else:
        theirs.save(str(tmp_path / "tokenizer.json"))
    assert assert_same_ids(tmp_path, lambda text: theirs.encode(text, add_special_tokens=False).ids)


@pytest.mark.oracle
@pytest.mark.parametrize(("lower", "strip", "chinese"), SWITCHES)
def test_transformers_opens_what_is_saved_here(tmp_path, lower, strip, chinese):
    transformers = pytest.importorskip("transformers")
    mine = WordPieceTokenizer(PIECES, lower, strip, tokenize_chinese_chars=chinese)
    for name, content in tokenizer_files(mine, 64).items():
        (tmp_path / name).write_bytes(content)
    for kind in (transformers.BertTokenizer, transformers.AutoTokenizer):
        theirs = kind.from_pretrained(tmp_path)
        assert theirs.model_max_length == 64
        for text in TEXTS:
            assert theirs(text)["input_ids"] == mine.encode(text).input_ids, text


@pytest.mark.oracle
@pytest.mark.parametrize(
    "lines",
    [
        "a\n\nthe\n",
        "a\nthe\n\n\n",
        "a\nthe\na\n##b\n",
        "a\n[MASK]\nthe",
        "a \nthe\u3000\na\n",
        "a\r\n\r\nthe\r\n",
        "a\n \nthe\n",
    ],
    ids=ascii,
)
def test_lines_of_published_vocabularies(tmp_path, lines):
    """Empty ones, doubled ones, white space at their ends; then the same saved as a tokenizer.json."""
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_bytes(("\n".join(SPECIAL_TOKENS) + "\n" + lines).encode())
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    theirs.save_pretrained(tmp_path / "again")
    texts = ["a the aa The", "[MASK] a"]
    for folder in (tmp_path, tmp_path / "again"):
        read = read_tokenizer(folder, 100)
        assert [read.encode(text).input_ids for text in texts] == theirs(texts)["input_ids"]
    for name, content in tokenizer_files(read, 64).items():
        (tmp_path / "again" / name).write_bytes(content)
    mine = transformers.BertTokenizer.from_pretrained(tmp_path / "again")
    assert mine(texts)["input_ids"] == theirs(texts)["input_ids"]
