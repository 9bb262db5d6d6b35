"""Examples as ids: which token carries what, what is cut off, which characters a piece stands for."""

from __future__ import annotations

import itertools
import random
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from sample_texts import HOSTILE, HOSTILE_WORDS, SETTINGS

from minigrad.bert.examples import ExampleError, Examples
from minigrad.bert.features import Features, TaskData, encode_examples, located_pieces, pad
from minigrad.text.normalization import normalize
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

pytestmark = pytest.mark.no_arrays

PIECES = ["who", "was", "it", "mary", "an", "##na", "##n", "a", "b", "e", "##e", "##b", ".", "!", "?"]
PIECES += ["中", "19", "##s", "z", "u", "##u", "##rich", "cafe"]
PIECES += ["\u1112", *(f"##{c}" for c in "\u1112\u1161\u11ab")]
TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, *PIECES])
TAGS = {0: "B", 1: "O"}


def examples(task: str, *rows: dict, has_targets: bool = True) -> Examples:
    return Examples(Path("rows.jsonl"), task, list(rows), list(range(1, len(rows) + 1)), has_targets)


def encode(task: str, *rows: dict, length: int = 16, labels=TAGS, has_targets: bool = True):
    return encode_examples(examples(task, *rows, has_targets=has_targets), TOKENIZER, length, labels)


def tokens(features: Features) -> str:
    return " ".join(TOKENIZER.vocab[i] for i in features.input_ids)


def test_texts():
    encoded = encode(
        "classify", {"text": "it was anna", "label": "O"}, {"text": "who who who who", "label": "B"}, length=5
    )
    assert [tokens(one) for one in encoded.features] == ["[CLS] it was an [SEP]", "[CLS] who who who [SEP]"]
    assert [one.targets for one in encoded.features] == [{"labels": 1}, {"labels": 0}]
    assert encoded.notes == [
        "2 of 2 rows of rows.jsonl (100%) are longer than 5 tokens: their ends are cut off"
    ]
    assert encode("classify", {"text": "it was anna", "label": "O"}, length=6).notes == []


def test_pairs():
    row = {"text": "who was it", "text_pair": "mary", "label": "O"}
    (one,) = encode("pairs", row).features
    assert tokens(one) == "[CLS] who was it [SEP] mary [SEP]"
    assert one.token_type_ids == [0, 0, 0, 0, 0, 1, 1]
    (one,) = encode("pairs", row, length=6).features
    assert tokens(one) == "[CLS] who was [SEP] mary [SEP]"  # the longer one is cut


def question(context: str, answer: str, **more) -> dict:
    return {
        "question": "who ?",
        "context": context,
        "answer": answer,
        "answer_start": context.index(answer),
        **more,
    }


def test_the_tokens_of_an_answer():
    (one,) = encode("qa", question("It was   Anna b!", "Anna b")).features
    assert tokens(one) == "[CLS] who ? [SEP] it was an ##na b ! [SEP]"
    assert one.token_type_ids == [0] * 4 + [1] * 7
    assert one.targets == {"start_positions": 6, "end_positions": 8}
    assert one.places == [None] * 4 + [(0, 2), (3, 6), (9, 11), (11, 13), (14, 15), (15, 16), None]
    assert one.starts == range(4, 10)
    (one,) = encode("qa", question("it was anna", "na")).features  # within a word: the pieces that it touches
    assert one.targets == {"start_positions": 7, "end_positions": 7}


def test_a_long_context_is_read_in_windows_that_overlap_by_half():
    encoded = encode("qa", question("it was mary . who was it", "mary ."), question("mary", "mary"), length=8)
    assert [tokens(one) for one in encoded.features] == [
        "[CLS] who ? [SEP] it was mary [SEP]",  # each step is a half of three, rounded down
        "[CLS] who ? [SEP] was mary . [SEP]",
        "[CLS] who ? [SEP] mary . who [SEP]",
        "[CLS] who ? [SEP] . who was [SEP]",
        "[CLS] who ? [SEP] who was it [SEP]",
        "[CLS] who ? [SEP] mary [SEP]",
    ]
    assert encoded.owners == [0, 0, 0, 0, 0, 1]
    assert [one.teaches for one in encoded.features] == [False, True, True, False, False, True]
    assert encoded.features[1].targets == {"start_positions": 5, "end_positions": 6}
    (note,) = encoded.notes
    assert note.startswith(
        "1 of 2 rows of rows.jsonl (50%) are longer than 8 tokens: their contexts are read in wind"
    )


def test_beside_questions_without_an_answer_a_window_without_it_says_so():
    """As in the released `run_squad.py`: what has none in its window has [CLS] as its answer."""
    none = {**question("mary", "mary"), "answer": "", "answer_start": 0}
    encoded = encode("qa", question("it was mary . who was it", "mary ."), none, length=8)
    starts = [one.targets["start_positions"] for one in encoded.features]
    ends = [one.targets["end_positions"] for one in encoded.features]
    assert (starts, ends) == ([0, 5, 4, 0, 0, 0], [0, 6, 5, 0, 0, 0])
    assert all(one.teaches for one in encoded.features)


@pytest.mark.parametrize("length", range(5, 20))
def test_an_answer_may_start_at_each_token_of_the_context_in_one_window(length):
    for size in range(1, 40):
        row = {"question": "who ?", "context": " ".join("ab."[i % 3] for i in range(size))}
        encoded = encode("qa", row, has_targets=False, length=length)
        starts = [one.places[i] for one in encoded.features for i in one.starts]
        assert starts == located_pieces(row["context"], TOKENIZER)[1]
        assert all(len(one.input_ids) <= length for one in encoded.features)
        first = encoded.features[0]
        room = len(first.input_ids) - 1 - first.starts[0]  # of a window
        # They part in the middle of what they share.
        for before, after in itertools.pairwise(encoded.features):
            assert len(before.input_ids) - 1 - before.starts[-1] >= room // 4, "words behind, for an answer"
            assert after.starts[0] - first.starts[0] >= room // 4, "words in front"


def test_all_rows_are_kept_and_those_that_teach_nothing_are_counted():
    rows = [question("mary was it", "mary"), question("it was mary", "it was mary")]
    encoded = encode("qa", *rows, length=7)
    assert encoded.rows == rows
    assert encoded.owners == [0, 0, 1, 1]
    assert (
        "1 of 2 rows of rows.jsonl teach nothing, because what is to be learned of them was cut off"
        in encoded.notes
    )
    with pytest.raises(
        ExampleError, match=r"rows\.jsonl: in each row, what is to be learned is beyond 7 tokens"
    ):
        encode("qa", *rows[1:], length=7)
    tagged = [{"tokens": ["annan", "a"], "tags": ["B", "O"]}, {"tokens": ["a"], "tags": ["O"]}]
    encoded = encode("tag", *tagged, length=4)
    assert [one.teaches for one in encoded.features] == [False, True]
    assert encoded.rows == tagged


def test_a_long_context_is_located_at_once():
    text = "Zu\u0308rich \u200b中 " * 30_000
    started = time.process_time()
    _, places = located_pieces(text, TOKENIZER)
    assert time.process_time() - started < 10
    assert [text[start:end] for start, end in places[-4:]] == ["Z", "u", "rich", "中"]


def test_a_long_question_leaves_half_of_the_room_to_the_context():
    row = {"question": "who " * 30, "context": "mary " * 7}
    first, *_, last = encode("qa", row, has_targets=False, length=12).features
    assert tokens(first) == "[CLS] who who who who [SEP] mary mary mary mary mary [SEP]"
    assert tokens(last).endswith("[SEP] mary mary mary mary mary [SEP]")
    row = {"question": "who " * 30, "context": "mary"}
    (one,) = encode("qa", row, has_targets=False, length=12).features
    assert tokens(one) == "[CLS] " + "who " * 8 + "[SEP] mary [SEP]"


def test_the_first_piece_of_a_word_carries_its_tag():
    row = {"tokens": ["it", "was", "annan", "\u200b", "b!"], "tags": ["O", "O", "B", "B", "O"]}
    (one,) = encode("tag", row).features
    # A word without a piece still has its place
    assert tokens(one) == "[CLS] it was an ##na ##n [UNK] b ! [SEP]"
    assert one.targets["labels"] == [-100, 1, 1, 0, -100, -100, 0, 1, -100, -100]
    assert one.places == [1, 2, 3, 6, 7]
    encoded = encode("tag", row, length=6)  # a word that does not fit whole is cut off, and all after it
    assert encoded.features[0].targets["labels"] == [-100, 1, 1, -100]
    assert encoded.notes == [
        "1 of 1 rows of rows.jsonl (100%) are longer than 6 tokens: their ends are cut off"
    ]
    with pytest.raises(ExampleError, match="what is to be learned is beyond 4 tokens"):
        encode("tag", {"tokens": ["annan"], "tags": ["B"]}, length=4)


@pytest.mark.parametrize(
    ("task", "row", "column"),
    [
        ("classify", {"text": "a", "label": "X"}, "label"),
        ("tag", {"tokens": ["a", "b"], "tags": ["O", "X"]}, "tags"),
    ],
)
def test_a_label_that_the_model_does_not_know(task, row, column):
    known = {"classify": {"text": "a", "label": "O"}, "tag": {"tokens": ["a"], "tags": ["O"]}}[task]
    message = rf"row 2 \(line 2\), column '{column}': expected one of B, O, which the model knows, got 'X'"
    with pytest.raises(ExampleError, match=message):
        encode(task, known, row)


def test_a_label_that_looks_like_one_that_the_model_knows():
    with pytest.raises(
        ExampleError, match=r"expected 'caf\\xe9', which the model knows, got 'cafe\\u0301', which looks"
    ):
        encode("classify", {"text": "a", "label": "cafe\u0301"}, labels={0: "caf\u00e9", 1: "O"})


def test_a_name_of_two_classes_says_nothing_to_learn():
    row = {"text": "a", "label": "O"}
    with pytest.raises(ExampleError, match="the model has two classes with the name 'B': which is meant"):
        encode("classify", row, labels={0: "B", 1: "B", 2: "O"})
    encode_examples(examples("classify", row), TOKENIZER, 16, {0: "B", 1: "B", 2: "O"}, to_learn=False)
    encode("qa", question("mary", "mary"), labels={0: "B", 1: "B"})  # which has no classes


# --- Which characters a piece stands for -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("  mary\tanna\n", "mary an na"),
        ("Mary,anna!", "Mary , an na !"),
        ("a中b", "a 中 b"),
        ("É ee e\u0301e", "É e e e e"),  # an accent that is dropped is no piece's
        ("[MASK]. a", "[MASK] . a"),
        ("a\u200bb \u200b a\x1cb", "a b a b"),
        ("a[SEP]b\u200b", "a [SEP] b"),
        ("한한", "한 한 한 한 한 한"),  # three letters each
        ("1990s", "1990s"),  # [UNK]
        ("19s", "19 s"),
    ],
)
def test_characters_of_pieces(text, expected):
    ids, places = located_pieces(text, TOKENIZER)
    assert ids == TOKENIZER.token_ids(text)
    assert [text[start:end] for start, end in places] == expected.split(" ") * bool(text)


def noise(count: int) -> list[str]:
    rng = random.Random(0)
    alphabet = [*"ab.!eéÉ中İß \u0301\u200b\x1c\xa0ﬁ\ud7ff", "[MASK]", "##", "mary", "anna"]
    return ["".join(rng.choices(alphabet, k=rng.randrange(12))) for _ in range(count)]


@pytest.mark.parametrize(("lower_case", "strip_accents"), [(True, None), (False, None), (True, False)])
def test_the_ids_are_those_of_the_tokenizer_and_the_places_are_in_order(lower_case, strip_accents):
    tokenizer = WordPieceTokenizer(TOKENIZER.vocab, lower_case, strip_accents)
    for text in noise(2000):
        ids, places = located_pieces(text, tokenizer)
        assert ids == tokenizer.token_ids(text), text
        assert len(places) == len(ids)
        assert all(0 <= start < end <= len(text) for start, end in places)
        assert places == sorted(places)


# Each letter of the hostile texts is a piece of its own: [UNK] would hide where a piece begins.
HOSTILE_LETTERS = sorted(
    {c for lower in (True, False) for c in normalize(HOSTILE, lower_case=lower, strip_accents=False)}
    | {*normalize(HOSTILE), *"abcdefghijklmnopqrstuvwxyz"}
)
HOSTILE_PIECES = [
    *SPECIAL_TOKENS,
    *HOSTILE_LETTERS,
    *(f"##{c}" for c in HOSTILE_LETTERS),
    "mary",
    "ann",
    "##ich",
]
REAL = [
    "Zürich, CAFÉ und Straße: 3,5 °C! İstanbul'da kış",
    unicodedata.normalize("NFD", "Zürich, CAFÉ und Straße; naïve; Ångström; Đặng Thị Ngọc Thịnh"),
    "กรุงเทพมหานคร เป็นเมืองหลวง น้ำ",
    "नई दिल्ली भारत की राजधानी है।",
    "서울은 대한민국의 수도이다.",
    unicodedata.normalize("NFD", "서울은 대한민국의 수도이다."),
    "東京は日本の首都です。北京是中国的首都。",
    "القاهرةُ عاصمةُ مصر؟ מָה שְּׁלוֹמְךָ",
    "zero\u200bwidth soft\xadhyphen \ufeffmark a\u200db \u202eright\u202c nul\x00 \x0bbell\x07 \x85next",
    "👩\u200d🚀 👍🏽 ❤\ufe0f 🇩🇪 1\ufe0f\u20e3",
    "[MASK]e\u0301[SEP]\u0301a [mask] x[UNK]",
]


@pytest.mark.oracle
@pytest.mark.parametrize(("lower_case", "strip_accents"), SETTINGS)
@pytest.mark.parametrize("chinese", [True, False])
def test_characters_of_pieces_equal_those_of_tokenizers(tokenizers, lower_case, strip_accents, chinese):
    ids = {piece: i for i, piece in enumerate(dict.fromkeys(HOSTILE_PIECES))}
    theirs = tokenizers.BertWordPieceTokenizer(
        ids, lowercase=lower_case, strip_accents=strip_accents, handle_chinese_chars=chinese
    )
    tokenizer = WordPieceTokenizer(ids, lower_case, strip_accents, tokenize_chinese_chars=chinese)
    rng = random.Random(1)
    alphabet = [*HOSTILE, *HOSTILE_WORDS, *"  aeE中", "mary", "Ann", "\u0301", "rich"]
    drawn = ["".join(rng.choices(alphabet, k=rng.randrange(20))) for _ in range(1000)]
    for text in [*REAL, HOSTILE, *drawn]:
        expected = theirs.encode(text, add_special_tokens=False)
        assert located_pieces(text, tokenizer) == (expected.ids, expected.offsets), text


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("answer", ["rich", "Zü", "Zürich", "café", "café b"])
def test_an_answer_comes_back_with_its_accents(form, answer):
    row = question(unicodedata.normalize(form, "a Zürich. a café b"), unicodedata.normalize(form, answer))
    (one,) = encode("qa", row, length=30).features
    first, last = one.targets["start_positions"], one.targets["end_positions"]
    assert row["context"][one.places[first][0] : one.places[last][1]] == row["answer"]


# --- Batches ---------------------------------------------------------------------------------------------


def test_a_batch_is_as_long_as_its_longest():
    batch = pad(
        [Features([2, 9, 3], [0, 1, 1], {"labels": [-100, 1, -100]}), Features([2], [0], {"labels": [0]})], 7
    )
    assert batch["input_ids"].tolist() == [[2, 9, 3], [2, 7, 7]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["token_type_ids"].tolist() == [[0, 1, 1], [0, 0, 0]]
    assert batch["labels"].tolist() == [[-100, 1, -100], [0, -100, -100]]
    assert pad([Features([2], [0], {"labels": 4})] * 2, 7)["labels"].tolist() == [4, 4]


def test_each_epoch_has_every_example_once_in_an_order_of_its_own():
    features = [Features([i], [0], {"labels": i}) for i in range(7)]
    data = TaskData(features, 3, 5, 0)
    epochs = [[data.next_batch()["labels"].tolist() for _ in range(data.batches_per_epoch)] for _ in range(3)]
    assert [[len(batch) for batch in epoch] for epoch in epochs] == [[3, 3, 1]] * 3
    flat = [[i for batch in epoch for i in batch] for epoch in epochs]
    assert all(sorted(epoch) == list(range(7)) for epoch in flat)
    assert len({tuple(epoch) for epoch in flat}) == 3
    other = TaskData(features, 3, 6, 0)
    assert other.next_batch()["labels"].tolist() != epochs[0][0]


def test_the_data_go_on_where_they_were():
    features = [Features([i], [0], {"labels": i}) for i in range(7)]
    data = TaskData(features, 2, 5, 0)
    for _ in range(6):
        data.next_batch()
    twin = TaskData(features, 2, 5, 0)
    twin.load_state_dict(data.state_dict())
    for _ in range(9):
        np.testing.assert_array_equal(data.next_batch()["labels"], twin.next_batch()["labels"])


def test_a_fingerprint_tells_examples_apart():
    rows = [{"text": "it was anna", "label": "O"}, {"text": "it was mary", "label": "B"}]
    first = encode("classify", *rows).fingerprint()
    assert first == encode("classify", *rows).fingerprint()
    assert first != encode("classify", *rows[::-1]).fingerprint()
    assert first != encode("classify", *rows, labels={0: "O", 1: "B"}).fingerprint()
    assert first != encode("classify", *rows, length=4).fingerprint()
