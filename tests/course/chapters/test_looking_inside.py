"""What `looking_inside` shows: gold arcs of stories, shuffled stories, changed heads of a model, pictures of maps."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from minigrad import Tensor, no_grad, random
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining
from minigrad.course.chapters import looking_inside as inside
from minigrad.course.furniture.varied_stories import SETTING
from minigrad.stories.grammar import Story, tell_story
from minigrad.stories.stories import story_tokenizer


@pytest.fixture(scope="module")
def texts() -> inside.Texts:
    return inside.read(30, seed=0)


@pytest.fixture(scope="module")
def tokenizer():
    return story_tokenizer(SETTING)


@pytest.fixture
def model():
    random.manual_seed(3)
    config = BertConfig(
        vocab_size=len(story_tokenizer(SETTING).vocab),
        hidden_size=24,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=48,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=56,
        initializer_range=0.4,
    )
    return BertForPreTraining(config).eval()


def spoken(story: Story) -> list[str]:
    return [word.text for sentence in story.sentences for word in sentence]


def test_the_arcs_of_a_story_are_those_that_a_reader_finds():
    story = next(
        story
        for story in (tell_story(SETTING, n) for n in range(2000))
        if "describes it to" in " ".join(spoken(story))
    )
    words, arcs = spoken(story), inside.arcs_of(story)
    it = words.index("it")
    assert (it, it - 1) in arcs["object → verb"]
    assert (it - 1, it) in arcs["verb → object"]
    ((_, thing),) = [arc for arc in arcs["pronoun → antecedent"] if arc[0] == it]
    assert any(words[thing] in kind.nouns for kind in SETTING.lexicon.kinds.values())
    for the, noun in arcs["the → its noun"]:
        assert words[the] == "the"
        assert the < noun <= the + 2
    for word, before in arcs["word → same before"]:
        assert words[word] == words[before]
        assert before < word
        assert words[word] not in words[before + 1 : word]


def test_every_relation_goes_both_ways_and_has_arcs(texts):
    assert set(texts.arcs) == set(inside.RELATIONS)
    assert all(len(arcs) for arcs in texts.arcs.values())
    forth, back = texts.arcs["subject → verb"], texts.arcs["verb → subject"]
    assert {tuple(arc) for arc in forth} == {(s, j, i) for s, i, j in back}


def test_texts_say_where_the_words_are(texts, tokenizer):
    ids = texts.inputs["input_ids"]
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
    assert np.array_equal(texts.words, ~np.isin(ids, special))
    assert np.array_equal(texts.slots != "", texts.words)
    for number, story in enumerate(texts.stories):
        assert [tokenizer.vocab[i] for i in ids[number, texts.words[number]]] == spoken(story)
    for arcs in texts.arcs.values():
        assert texts.words[arcs[:, 0], arcs[:, 1]].all()
        assert texts.words[arcs[:, 0], arcs[:, 2]].all()
    roots = texts.words & (texts.heads < 0)
    assert (roots.sum(axis=1) == 4).all()  # the verb of each of four sentences


def test_shuffled_stories_keep_their_words_and_arcs(texts):
    mixed = inside.shuffled(texts, seed=0)
    ids, moved = texts.inputs["input_ids"], mixed.inputs["input_ids"]
    assert np.array_equal(np.sort(ids, axis=1), np.sort(moved, axis=1))
    assert np.array_equal(ids[~texts.words], moved[~texts.words])
    assert (ids != moved).mean() > 0.3
    for name, arcs in texts.arcs.items():
        for end in (1, 2):
            assert np.array_equal(ids[arcs[:, 0], arcs[:, end]], moved[arcs[:, 0], mixed.arcs[name][:, end]])


def test_candidates_are_the_other_words_of_a_story(texts, model):
    A = inside.maps(model, texts)
    seen, steps, may, gold = inside.candidates(texts, A, slice(5, 9))
    rows = np.arange(len(gold))
    assert may[rows, gold].all()
    assert (may.sum(axis=1) == texts.words[5:9].sum(axis=1)[np.nonzero(texts.heads[5:9] >= 0)[0]] - 1).all()
    first = np.flatnonzero(texts.heads[5] >= 0)[0]
    assert steps[0, first] == 0
    assert np.array_equal(seen[0, :, :16], A[5, :, first].T)
    assert np.array_equal(seen[0, :, 16:], A[5, :, :, first].T)


def test_a_rule_takes_the_last_word_before_that_fits(texts, tokenizer):
    arcs = texts.arcs["word → same before"]
    found = inside.found_by_rule(texts, "word → same before", arcs, tokenizer.vocab)
    assert found.all()
    wrong = arcs.copy()
    wrong[:, 2] -= 1
    assert not inside.found_by_rule(texts, "word → same before", wrong, tokenizer.vocab).any()
    for name in set(inside.RULES) - {"word → same before"}:
        assert inside.found_by_rule(texts, name, texts.arcs[name], tokenizer.vocab).mean() > 0.8, name


def test_pronouns_stand_for_people_of_their_gender_and_things_of_their_number():
    assert {"adam", "tom"} <= set(inside.MEANT["he"]) == set(inside.MEANT["his"])
    assert set(inside.MEANT["her"]).isdisjoint(inside.MEANT["him"])
    assert {noun + "s" for noun in inside.MEANT["it"]} == set(inside.MEANT["them"])


def test_a_change_that_changes_nothing_leaves_the_losses(texts, model, monkeypatch, tokenizer):
    monkeypatch.setattr(inside, "story_model", lambda: (model, tokenizer))
    few = inside.read(4, seed=7)
    same = lambda A, V: (A, V)  # noqa: E731
    silent = lambda A, V: (A, 0 * V)  # noqa: E731
    whole, slots, after = inside.losses(model, few, [([1], same), ([2, 4], same), ([3], silent)])
    assert len(whole) == len(slots) == few.words.sum()
    assert np.allclose(after[:2], whole, atol=1e-4)
    assert np.abs(after[2] - whole).max() > 1e-2
    ids = few.inputs["input_ids"].copy()
    order = np.cumsum(few.words, axis=1) - 1
    hidden = few.words & (order % inside.APART == 0)
    ids[hidden] = tokenizer.mask_token_id
    with no_grad():
        logits = model(ids, few.inputs["attention_mask"], few.inputs["token_type_ids"]).prediction_logits
    logits = logits.numpy()[hidden].astype(float)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = -log_p[np.arange(len(log_p)), few.inputs["input_ids"][hidden]]
    assert np.allclose(whole[: len(expected)], expected, atol=1e-4)


def test_hidden_maps_have_each_row_of_a_text_in_which_its_word_is_hidden(model, monkeypatch, tokenizer):
    monkeypatch.setattr(inside, "story_model", lambda: (model, tokenizer))
    few = inside.read(2, seed=7)
    found = inside.hidden_maps(model, few)
    places = np.flatnonzero(few.words[1])
    ids = few.inputs["input_ids"].copy()
    ids[1, places[4 :: inside.APART]] = tokenizer.mask_token_id
    with no_grad():
        inputs = (few.inputs["attention_mask"], few.inputs["token_type_ids"])
        attentions = model.bert(ids, *inputs, output_attentions=True).attentions
    row = attentions[2].numpy()[1, 1, places[10]]  # head 3-2, a word that is hidden with the fifth
    assert np.allclose(found[1, 9, places[10]], row, atol=1e-6)
    assert not np.allclose(inside.maps(model, few)[1, 9, places[10]], row, atol=1e-4)
    assert not found.transpose(0, 2, 1, 3)[~few.words].any()


def test_a_change_reaches_only_the_layer_that_it_names(model, monkeypatch, tokenizer):
    monkeypatch.setattr(inside, "story_model", lambda: (model, tokenizer))
    few, calls = inside.read(2, seed=7), []

    def count(A, V):
        calls.append(A.shape)
        return A, V

    inside.losses(model, few, [([2, 3], count)])
    assert len(calls) == 2 * inside.APART


def test_what_heads_bring_is_long_as_computed_head_by_head(texts, model):
    few = inside.read(3, seed=1)
    A, lengths = inside.brought(model, few)
    with no_grad():
        states = model.bert(**few.inputs).hidden_states
    layer = model.bert.encoder.layer[2]
    V = layer.attention.self.value(states[2]).numpy()  # (S, L, d_model)
    block = layer.attention.output.dense.weight.numpy()[6:12]  # of head 3-2
    assert np.allclose(lengths[:, 9], np.linalg.norm(V[..., 6:12] @ block, axis=-1), rtol=1e-4)
    assert A.shape == (3, 16, *few.words.shape[1:] * 2)


def test_some_words_are_words(texts):
    found = inside.some_words(texts, 2, seed=0)
    assert (found.sum(axis=1) == 2).all()
    assert not (found & ~texts.words).any()


def test_frames_count_the_gold_arcs_that_a_head_finds(texts, tokenizer):
    length = texts.words.shape[1]
    weights = np.full((2, length, length), 1e-3)
    gold = [(i, j) for name in inside.GOLD for story, i, j in texts.arcs[name].tolist() if story == 0]
    for i, j in gold:
        weights[1, i, j] = 1
    none, all_of_them = inside.head_frames(texts, 0, tokenizer, weights)
    assert none.title == "Head 1-1"
    assert f"{len(gold)} of {len(gold)}" in all_of_them.text
    assert all_of_them.svg.count('class="arc"') == len(gold)


def test_names_of_heads_count_from_one():
    assert [inside.head_name(k) for k in (0, 3, 4, 15)] == ["1-1", "1-4", "2-1", "4-4"]


def test_figures_show_every_head():
    places = np.random.default_rng(0).standard_normal((16, 2))
    for picture in (
        inside.needed_figure([inside.head_name(k) for k in range(16)], np.abs(places[:, 0])),
        inside.visible_figure(*np.abs(places.T), label="x"),
    ):
        assert all(f">{inside.head_name(k)}</text>" in picture.svg for k in range(16))
    rows = [["a → b", 0.5, 0.6, 0.1, 0.05]]
    assert ">a → b</text>" in inside.offsets_figure(rows).svg


def test_drawn_models_differ_by_their_seed(monkeypatch, model, tokenizer):
    monkeypatch.setattr(inside, "story_model", lambda: (model, tokenizer))
    one, same, other = (inside.as_drawn(seed).bert.pooler.dense.weight.numpy() for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert isinstance(inside.as_drawn(1).bert.pooler.dense.weight, Tensor)
