"""The game with the model of stories: its rounds are the grammar's, and a reader can play it to the end."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import live_game
import live_model
import pytest

from bert_course.common.live_examples import Example, best_possible
from minigrad.text.wordpiece import MASK

pytestmark = [
    pytest.mark.numpy_only("the page is made on the CPU"),
    pytest.mark.xdist_group("game"),  # in one process, so that the rounds are drawn once
]

STATIC = Path(__file__).resolve().parents[2] / "book" / "site" / "static"


def rounds():
    """All sixty; they are drawn when the first test asks, and not when tests are collected."""
    return [one for game in live_game.games() for one in game]


def test_there_are_sixty_different_rounds_half_of_them_settled():
    assert [len(game) for game in live_game.games()] == [10] * 6
    assert len({one.halves for one in rounds()}) == 60
    for game in live_game.games():
        best = [max(one.exact.values()) for one in game]
        assert sum(share >= live_game.SETTLED for share in best) == 5
        assert sum(live_game.OPEN[0] <= share <= live_game.OPEN[1] for share in best) == 5


@pytest.mark.parametrize("number", range(0, 60, 13))
def test_the_points_are_the_grammar_s(number: int):
    one = rounds()[number]
    assert sum(half.count(MASK) for half in one.halves) == 1
    assert one.choices == sorted(set(one.choices))
    assert one.answer in one.choices
    assert len(one.choices) == 4
    possible = best_possible(Example(" [SEP] ".join(one.halves), one.answer))
    assert one.exact == {word: pytest.approx(possible.get(word, 0), abs=1e-4) for word in one.choices}
    assert max(possible, key=possible.__getitem__) in [
        word for word, share in possible.items() if word in one.choices and share == max(possible.values())
    ]


@pytest.fixture
def game(browser: Any, tmp_path: Path) -> Any:
    """The game alone on a page."""
    for name in ("bert.js", "beat.js", "ask.css"):
        shutil.copy(STATIC / name, tmp_path)
    (tmp_path / "ask-stories.js").write_text(live_model.model_script("stories"), encoding="utf-8")
    (tmp_path / "page.html").write_text(
        '<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="ask.css">'
        f'{live_game.page("ask-stories.js")}<script src="bert.js"></script><script src="beat.js"></script>',
        encoding="utf-8",
    )
    page = browser.new_page()
    page.set_default_timeout(10_000)
    page.goto((tmp_path / "page.html").as_uri())
    yield page
    page.close()


def points(page: Any) -> list[float]:
    return [float(one) for one in re.findall(r"\d+\.\d", page.inner_text(".score"))[-3:]]


def test_the_best_guesses_get_all_there_is_and_foolish_ones_nearly_nothing(game: Any):
    for choose, number in ((max, 0), (min, 1)):
        game.locator(".go").click()
        for place, one in enumerate(live_game.games()[number], start=1):
            word = choose(one.exact, key=one.exact.__getitem__)
            game.get_by_text(f"Round {place} of 10.").wait_for()  # the model may still be loading
            assert game.locator(".choices button").all_inner_texts() == one.choices
            shown = game.inner_text(".story").replace("\n", " ")
            assert shown == " ".join(one.halves).replace(MASK, "?")
            game.locator(".choices").get_by_role("button", name=word, exact=True).click()
            assert f"You {word}: {one.exact[word]:.2f}" in game.inner_text(".said li:first-child")
            assert game.inner_text(".story mark") == one.answer
            assert game.locator(".choices button:enabled").count() == 0
            if game.locator(".go", has_text="Next").count():
                game.locator(".go").click()
        you, bert, best = points(game)
        expected = sum(max(one.exact.values()) for one in live_game.games()[number])
        assert best == pytest.approx(expected, abs=0.051)
        assert bert <= best + 0.051
        assert bert > best - 1.5, "the model has read the stories"
        if choose is max:
            assert you == best
            assert "You beat the model." in game.inner_text(".score") or you <= bert + 0.1
        else:
            assert you < 0.5
            assert "The model read better." in game.inner_text(".score")
        assert game.inner_text(".go") == "Ten more"


def test_a_keyboard_plays_it(game: Any):
    game.locator(".go").focus()
    game.keyboard.press("Enter")
    game.locator(".choices button").first.wait_for()
    assert game.evaluate("document.activeElement.textContent") == live_game.games()[0][0].choices[0]
    game.keyboard.press("Tab")
    game.keyboard.press("Enter")
    assert game.evaluate("document.activeElement.textContent") == "Next"
    game.keyboard.press("Enter")
    game.get_by_text("Round 2 of 10.").wait_for()


def test_a_model_that_does_not_come_is_said_and_asked_again(browser: Any, tmp_path: Path):
    for name in ("bert.js", "beat.js"):
        shutil.copy(STATIC / name, tmp_path)
    (tmp_path / "page.html").write_text(
        f'{live_game.page("ask-stories.js")}<script src="bert.js"></script><script src="beat.js"></script>'
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(".go").click()
    page.get_by_text("The game cannot begin: the model could not be loaded.").wait_for()
    (tmp_path / "ask-stories.js").write_text(live_model.model_script("stories"), encoding="utf-8")
    page.locator(".go").click()
    page.get_by_text("Round 1 of 10.").wait_for()
    page.close()
