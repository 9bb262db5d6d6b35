"""What chapter `start` draws."""

from __future__ import annotations

import json
import re

import pytest

from minigrad.bert.stored import stored
from minigrad.course.chapters.start import (
    EXAMPLES,
    SENTENCES,
    SIMILAR,
    guesses,
    hidden_words,
    learning_frames,
    three_ways,
)

pytestmark = pytest.mark.no_arrays


def test_guesses_are_bars_and_text():
    shown = guesses({"An [MASK] <b>": [("error & co", 0.25), ("x", 0.5)]})
    drawn = shown._repr_html_()
    assert '<span class="gap">[MASK]</span> &lt;b&gt;' in drawn
    assert "error &amp; co" in drawn
    assert re.findall(r"calc\(100% \* ([\d.]+)\)", drawn) == ["0.25", "0.50"]
    assert repr(shown) == "An [MASK] <b>\n    error & co 0.25, x 0.50"


def test_hidden_words_shows_what_the_model_sees():
    shown = hidden_words(["a", "bcd", "e", "f"], 2, {"nothing": ([], 0.5), "one": ([1], 0.125)})
    assert repr(shown).splitlines() == [
        "Hidden: nothing. The probability of “e” is 0.500.",
        "    a bcd ? f",
        "Hidden: one. The probability of “e” is 0.125.",
        "    a ███ ? f",
    ]
    drawn = shown._repr_html_()
    assert drawn.count('<span class="hidden"') == 1
    assert drawn.count(">bcd<") == 1  # a hidden word does not stand in the page either
    assert drawn.count('<span class="asked">?</span>') == 2


def test_each_word_sees_what_its_model_lets_it_see():
    drawn = three_ways(["a", "b", "c", "d"], shown=1)._repr_html_()
    labels = re.findall(r'aria-label="(\w+: \w+ sees [^"]*)"', drawn)
    assert len(labels) == 12
    assert {
        "ELMo: b sees a, c, d",
        "GPT: a sees no other word",
        "GPT: c sees a, b",
        "BERT: b sees a, c, d",
    } <= set(labels)
    elmo, gpt, bert = drawn.split("<svg ")[1:]
    assert (elmo.count('class="left"'), elmo.count('class="right"')) == (6, 6)  # two networks
    assert (gpt.count('class="left"'), gpt.count('class="right"')) == (6, 0)
    assert (bert.count('class="left"'), bert.count('class="right"')) == (12, 0)  # one


def test_three_ways_prints_the_word_that_is_shown():
    assert (
        repr(three_ways(["a", "b", "c"], shown=1)).splitlines()[1]
        == "GPT, one network reads from the left: b sees a"
    )


POINTS = [
    {"step": 0, "mlm_loss": 8.4, "mlm_accuracy": 0.0, "guesses": [["so", 0.001]]},
    {"step": 100, "mlm_loss": 6.3, "mlm_accuracy": 0.05, "guesses": [["the", 0.06]]},
    {"step": 1000, "mlm_loss": 3.8, "mlm_accuracy": 0.3372, "guesses": [["exception", 0.4], ["<b>", 0.1]]},
]


def test_a_frame_for_each_point():
    frames = learning_frames(POINTS, "Raise an [MASK].", 6.15)
    assert [frame.title for frame in frames] == ["Step 0", "Step 100", "Step 1,000"]
    assert frames[2].text == "Loss 3.80; right 33.7 % of the time. Guesses: exception 0.40, <b> 0.10."
    assert "&lt;b&gt;" in frames[2].svg


def test_the_marker_walks_along_the_curve():
    frames = learning_frames(POINTS, "x", 6.15)
    curves = {re.search(r'points="([^"]+)"', frame.svg)[1] for frame in frames}
    assert len(curves) == 1
    markers = [
        ",".join(re.search(r'<circle cx="([^"]+)" cy="([^"]+)"', frame.svg).groups()) for frame in frames
    ]
    assert markers == curves.pop().split()


def test_the_record_is_of_the_sentences_on_the_page():
    record = json.loads(stored("start/learning.json").read_text(encoding="utf-8"))
    examples = [text.replace("[MASK]", word) for text, word in EXAMPLES.items()]
    assert list(record["longest_run"]) == [*examples, SIMILAR, *SENTENCES]
    assert max(record["longest_run"][text] for text in SENTENCES) <= 5
