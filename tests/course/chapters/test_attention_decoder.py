"""What chapter `attention_decoder` shows: changed weights, scores against gold alignments, swapped states, pictures."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from minigrad import no_grad, random
from minigrad.course.chapters import attention_decoder as chapter
from minigrad.seq2seq import RecurrentConfig, RecurrentSeq2Seq, greedy_search
from minigrad.stories.language import NOUNS
from minigrad.stories.translation import translation_tokenizer


@pytest.fixture(scope="module")
def texts() -> list[chapter.Text]:
    return chapter.read(12, seed=4)


@pytest.fixture(scope="module")
def tokenizer():
    return translation_tokenizer(chapter.LONG)


@pytest.fixture
def model(tokenizer):
    random.manual_seed(5)
    config = RecurrentConfig(tokenizer.vocab_size, dropout=0.0, hidden_size=12, attention="general")
    return RecurrentSeq2Seq(config).eval()


def same(weights, seen):
    return weights


def even(weights, seen):
    return np.broadcast_to(seen / seen.sum(axis=-1, keepdims=True), weights.shape)


def test_texts_are_stories_with_a_piece_for_each_word(texts, tokenizer):
    for text in texts:
        source, target = chapter.tokens_of(text, tokenizer)
        assert len(source) == len(text.source)
        assert len(target) == len(text.target)
        assert tokenizer.unk_token_id not in source + target
    assert {text.sentences for text in chapter.read(30, 1, short=True)} == {1, 2}


def test_weights_that_are_not_changed_change_nothing(model, texts, tokenizer):
    batch = chapter.of_texts(texts, tokenizer)
    with no_grad():
        right, kept, flat = (
            one(**batch).logits.numpy()
            for one in (model, chapter.with_weights(model, same), chapter.with_weights(model, even))
        )
    np.testing.assert_array_equal(right, kept)
    assert np.abs(right - flat).max() > 1e-3


def test_changed_weights_are_those_that_are_given_out(model, texts, tokenizer):
    for A, text in zip(
        chapter.weights_of(chapter.with_weights(model, even), texts, tokenizer), texts, strict=True
    ):
        assert A.shape == (len(text.words), len(text.source) + 1)
        np.testing.assert_allclose(A, 1 / A.shape[1], rtol=1e-6)


def test_a_part_of_the_joined_vector_is_taken_away(model, texts, tokenizer):
    """Without the context, the source reaches the decoder by its first state alone: other states change nothing."""
    text, other = texts[0], texts[0]
    other = replace(other, source=("now", *text.source[1:]))
    for part, reads in (("the context", False), ("its own state", True)):
        one = chapter.without(model, part)
        with no_grad():
            memories = [one.encode(chapter.of_texts([x], tokenizer)["input_ids"]) for x in (text, other)]
            ids = np.array([[2, 7, 9]])
            mine, theirs = (
                one.decoder(ids, one.start(chapter.mixed(memories[0], memories[1], places)))[0].numpy()
                for places in ([], range(len(text.source) + 1))
            )
        assert (np.abs(mine - theirs).max() > 1e-6) == reads


def test_forced_is_right_where_greedy_search_is(model, texts, tokenizer):
    """A target that the model writes itself is right at every word; with one word changed it is not."""
    text = texts[0]
    source, _ = chapter.tokens_of(text, tokenizer)
    written = greedy_search(model, np.array([[*source, tokenizer.sep_token_id]]), max_length=6)[0]
    words = [tokenizer.id_to_token(i) for i in written.ids]
    own = replace(text, words=tuple(replace(text.words[0], text=word) for word in words))
    hits = chapter.forced(model, [own], tokenizer)[0]
    assert hits[: len(words)].all()
    other = "mary" if words[0] != "mary" else "john"
    wrong = replace(own, words=(replace(own.words[0], text=other), *own.words[1:]))
    assert not chapter.forced(model, [wrong], tokenizer)[0][0]


def test_alignment_error_rate_by_hand(texts):
    text = next(text for text in texts if text.sentences == 1)
    S = len(text.source)
    gold = np.zeros((len(text.words), S + 1))
    for t, word in enumerate(text.words):
        gold[t, word.aligned[0] if word.aligned else S] = 1
    assert chapter.alignment_error_rate([gold], [text]) == 0
    links = sum(len(word.aligned) for word in text.words)
    nowhere = np.eye(S + 1)[[S] * len(text.words)]
    assert chapter.alignment_error_rate([nowhere], [text]) == 1
    t = next(t for t, word in enumerate(text.words) if word.aligned)
    gold[t] = np.eye(S + 1)[(text.words[t].aligned[0] + 1) % S]
    assert chapter.alignment_error_rate([gold], [text]) == pytest.approx(1 - 2 * (links - 1) / (2 * links))


def test_the_same_story_of_another_thing():
    pairs = list(chapter.other_nouns(chapter.read(60, seed=2)))
    assert len(pairs) > 10
    for text, other in pairs:
        assert len(text.source) == len(other.source)
        assert text.source != other.source
        places = chapter.pronouns(text)
        assert places
        assert all(text.words[t].text != other.words[t].text for t in places)
        old, new = text.story.facts.noun, set(other.source) - set(text.source)
        assert len({word.removesuffix("s") for word in new}) == 1
        noun = new.pop().removesuffix("s")
        assert NOUNS[old][-1] != NOUNS[noun][-1]
        assert chapter.with_noun(text, old) == text


def test_all_parts_of_the_other_story_are_the_other_story(model, tokenizer):
    text, other = next(chapter.other_nouns(chapter.read(60, seed=2)))
    everything = {"places": range(len(text.source) + 1), "first": True, "words": True}
    assert chapter.endings(model, tokenizer, text, other, **everything) == chapter.endings(
        model, tokenizer, other, other
    )
    assert len(chapter.endings(model, tokenizer, text, other)) == len(chapter.pronouns(text))


@pytest.mark.parametrize("attention", ["none", "even", "dot", "general, both directions"])
def test_training_a_few_steps(attention, tokenizer):
    fresh = chapter.read(20, seed=9, short=True)
    before, after = (
        np.mean(
            np.concatenate(chapter.forced(chapter.train(attention, 0, 1e-2, steps, 16), fresh, tokenizer))
        )
        for steps in (1, 25)
    )
    assert after > before


def test_pictures_have_what_they_show():
    flow = chapter.look_flow(np.eye(3), np.array([[0.0, 2.0, 0.0]]), ["a", "b", "c"], ["x", "y", "z"])
    assert flow.values["a"].argmax() == 1
    one = {name: np.linspace(-1, 1, 16) for name in ("e", "h", "C", "h̃")}
    one |= {
        "a": np.array([0.25, 0.75]),
        "fed": "[CLS]",
        "wrote": "mary",
        "best": [("mary", 0.9), ("ga", 0.1)],
    }
    frames = chapter.seven_steps([one, one], ["mary", "sings"])
    assert len(frames) == 7
    assert "0.75" not in frames[1].svg
    assert "mary" in frames[0].svg, "the words are there, pale, before the weights"
    assert "0.75" in frames[2].svg
    assert "“sings”, with 0.75" in frames[6].text


def test_the_map_has_a_row_for_each_word_written():
    A = np.array([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]])
    drawn = chapter.weights_map(A, ["mary", "sings", "(end)"], ["tum", "fesh"])
    shades = [float(shade) for shade in re.findall(r'<rect[^>]*fill-opacity="([\d.]+)"', drawn.svg)]
    np.testing.assert_allclose(shades, np.maximum(A, 0.04).reshape(-1))
    assert re.findall(r">([^<>]+)</text>", drawn.svg) == ["mary", "sings", "(end)", "tum", "fesh"]
    assert drawn.alt.endswith("tum: mary; fesh: sings.")


def test_the_kind_of_a_word_is_that_of_what_it_translates(texts):
    kinds = {}
    for text in texts:
        for word in text.words:
            english = text.source[word.aligned[0]] if word.aligned else ""
            kinds.setdefault(chapter.kind_of(text, word), set()).add(english)
    assert kinds["no word"] == {""}
    assert kinds["full stop"] == {"."}
    assert kinds["it, them"] <= {"it", "them"}
    assert {word.removesuffix("s") for word in kinds["noun"]} <= set(NOUNS)
    assert not kinds["name"] & set(NOUNS)
    assert "has" in kinds["other"]
