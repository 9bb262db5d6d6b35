"""What chapter `wordpiece` shows: the frames of its merges, what a longest match looks up, its text."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters.wordpiece import tried
from bert_course.stored import stored
from minigrad.text.normalization import normalize, pre_tokenize
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS, count_words, first_pieces, train_wordpiece

COUNTS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}


def start():
    return [*SPECIAL_TOKENS, *first_pieces(COUNTS, 1000)]


@pytest.mark.parametrize("word", ["hugs", "bugs", "punpun", "mug"])
def test_what_is_tried_ends_as_the_tokenizer_cuts(word):
    vocab = [*start(), "##ug", "hug"]
    found = [("##" if i else "") + word[i:j] for i, j, there in tried(word, vocab) if there]
    cut = WordPieceTokenizer(vocab).tokenize(word)
    assert cut == (found if "".join(found).replace("##", "") == word else ["[UNK]"])


def test_the_stories_are_six_and_clean():
    text = stored("holmes.txt").read_text("utf-8")
    stories = text.split("\n\n\n")
    assert [story.split(".")[0] for story in stories] == [
        f"ADVENTURE {n}" for n in ("I", "II", "III", "IV", "V", "VI")
    ]
    assert len(text.encode()) < 300_000
    assert "\r" not in text
    assert "gutenberg" not in text.lower()
    assert set(normalize(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789 .,;:!?'\"-()&/")


def test_the_words_of_the_page_are_those_that_the_library_counts():
    story = stored("holmes.txt").read_text("utf-8").split("\n\n\n")[4]
    assert Counter(pre_tokenize(normalize(story))) == count_words([story])
    assert len(train_wordpiece([story], 300)) == 300
