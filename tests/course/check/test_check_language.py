"""What checks say in another language: what their catalogue has, and English where one is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from minigrad.course import check
from minigrad.course.check.language import sayer

LANGUAGES = [path.stem for path in Path(check.__file__).parent.glob("*.json")]
SAID = {
    "On {}: {}": "Bei {}: {}",
    "On all {} cases: {}": "Bei allen {} Fällen: {}",
    "{} of {} cases.": "{} von {} Fällen.",
    "a window": "ein Fenster",
    "{}; {}": "{}; {}",
    "Yes.": "Ja.",
}


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("Yes.", "Ja."),
        ("2 of 3 cases.", "2 von 3 Fällen."),
        ("On a window: 2 of 3 cases.", "Bei ein Fenster: 2 von 3 Fällen."),
        ("On a door: no.", "Bei a door: no."),
        ("On all 3 cases: Yes.", "Bei allen 3 Fällen: Ja."),
        ("On a window: a window; a door; a window", "Bei ein Fenster: ein Fenster; a door; ein Fenster"),
        ("Something else.", "Something else."),
        ("", ""),
    ],
)
def test_a_sentence(english: str, german: str):
    assert sayer(SAID)(english) == german


@pytest.mark.no_arrays
def test_places_to_fill_are_counted():
    with pytest.raises(ValueError, match="has 2 places"):
        sayer({"{} of {}": "{}"})


@pytest.mark.no_arrays
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_sentence_has_its_places_and_is_there_once(language: str):
    text = (Path(check.__file__).parent / f"{language}.json").read_text("utf-8")
    pairs = json.loads(text, object_pairs_hook=list)
    assert len(pairs) > 100
    sayer(dict(pairs))
    assert len(dict(pairs)) == len(pairs)


@pytest.mark.numpy_only("an answer of NumPy's")
def test_a_report_in_german(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("MINIGRAD_LANGUAGE", "de")
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")
    check.padding_mask(lambda mask, dtype: np.where(mask == 0, -np.inf, 0).astype(dtype)[:, None, None, :])
    said = capsys.readouterr().out
    assert said.startswith("padding_mask: noch nicht. 1 von 6 Fällen ist richtig.\nDu addierst -∞.")
    assert "Bei „3 Texte aus bis zu 5 Tokens, float32“: 5 von 15 Einträgen sind NaN oder unendlich" in said
    html = check.padding_mask.report(lambda mask, dtype: mask).in_language()._repr_html_()
    assert "<summary>Hinweis 1 von 3</summary>" in html
    assert "<div>erwartet</div>" in html


def test_without_a_language_it_is_english(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MINIGRAD_LANGUAGE", "")
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")
    check.padding_mask.hint()
    check.padding_mask._hints_given = 0
    assert capsys.readouterr().out.startswith("Hint 1 of 3: Make a number")


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    "language", ["xx", "DE", "de_DE", "de/../de", "../de", "de ", "\n", "./de", "de.json", "de\x1b"]
)
def test_an_unknown_language_is_refused_in_one_line(language: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MINIGRAD_LANGUAGE", language)
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")
    with pytest.raises(ValueError, match=r"MINIGRAD_LANGUAGE is .*, and there are: de, en") as refused:
        check.padding_mask.hint()
    check.padding_mask._hints_given = 0
    assert refused.value._render_traceback_() == [str(refused.value)]  # what Jupyter shows
    assert str(refused.value).isprintable()
