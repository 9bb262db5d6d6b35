"""The model that answers in the reader's browser: its numbers are minigrad's, and the page keeps still and answers."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import live_model
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sample_texts import HOSTILE, HOSTILE_WORDS

from bert_course.chapters.start import EXAMPLES, SENTENCES
from bert_course.common.live_examples import MODELS, Example, best_possible
from bert_course.stored import stored
from browsers import axe
from minigrad import random
from minigrad.bert import from_pretrained
from minigrad.bert.checkpoint import save_pretrained
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.predict import fill_mask
from minigrad.stories.floors import GrammarError
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import draw_pairs
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

pytestmark = pytest.mark.numpy_only("the page is made on the CPU")

STATIC = Path(__file__).resolve().parents[2] / "book" / "site" / "static"
FIRST = next(iter(EXAMPLES))
STORY_EXAMPLES = MODELS["stories"].examples
TOLERANCE = 1e-4  # of a score: float32 with its sums in another order makes a difference of about 1e-5
HARD = [
    "",
    " \n\t ",
    "_",
    "[MASK] [MASK] [MASK]",
    "_ " * 80,
    "the file " * 50 + "_",
    "x" * 300 + " _",
    "The 😀 is 👩🏽‍💻 and _ .",
    "nai\u0308ve cafe\u0301 \u0301\u0300 _ re\u0301sume\u0301",
    "RAISE AN [MASK] IF THE FILE DOES NOT EXIST.",
    "Raise an [mask] if the [MaSk] does not exist.",
    "[CLS] the file [SEP] is _ [PAD] [UNK] [CLS]",
    "[mas\u212a] [ma\u017fk] ſ \u212a",  # letters that are k and s in another case
    "中文 한국어 ΑΒΓΣ עברית العربية ไทย हिन्दी _",
    "file_name and __init__ and a_ _b and ___ and (_) and é_ and e\u0301_ and ２_ and Ⅷ_",
    "<img src=x onerror=alert(1)> &amp; \"_\" '</script>'",
    "\u202e\u200b\ufeff\x00 _ \U0010ffff",
    "don't ##ing [MASK]s [MASK[MASK]",
    "0 1 2 3 0.5 1e-12 _",
    HOSTILE,
    " ".join(HOSTILE_WORDS),
]
TEXTS = [*HARD, *EXAMPLES, *SENTENCES]
TEXTS += [re.sub(r"\b(?:the|is|of|a)\b", "_", sentence, count=1) for sentence in SENTENCES]
TEXTS += ["Return _ if x is true, else _ .", "_", "print(_)"]


def drawn_stories(count: int) -> Iterator[str]:
    """Stories with a gap, most of them with [SEP] between their halves."""
    for n, pair in enumerate(draw_pairs(SETTINGS["light"], count, seed=1)):
        words = [word.text for word in pair.words]
        words[n % len(words)] = "[MASK]"
        words.insert(sum(map(len, pair.a)), "[SEP]" if n % 4 else "")
        yield " ".join(words)


STORY_TEXTS = [*HARD, *(one.text for one in STORY_EXAMPLES), *drawn_stories(30), "mary _ [SEP] [SEP] _ [SEP]"]


def opened(folder: Path) -> tuple[Any, WordPieceTokenizer]:
    """A model and its tokenizer."""
    found = from_pretrained(folder)
    assert found.tokenizer is not None
    return found.model.eval(), found.tokenizer


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, WordPieceTokenizer]:
    """The stored model."""
    return opened(stored("start"))


@pytest.fixture(scope="module")
def teller() -> tuple[Any, WordPieceTokenizer]:
    """The stored model of stories."""
    return opened(stored("stories"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the widget, between two lines of text, and its files."""
    folder = tmp_path_factory.mktemp("ask")
    for name in ("bert.js", "ask.js", "ask.css"):
        shutil.copy(STATIC / name, folder)
    scripts = {name: live_model.script_name(name) for name in ("start", "stories")}
    for name, script in scripts.items():
        (folder / script).write_text(live_model.model_script(name), encoding="utf-8")
    body = f"<h1>Ask</h1>{live_model.page(scripts)}<p id='below'>Below.</p>"
    (folder / "page.html").write_text(
        '<!DOCTYPE html><html data-theme="light"><meta charset="utf-8"><link rel="stylesheet" href="ask.css">'
        "<style>[data-theme=dark] {background: #121212; color: #ced6dd; --pst-color-background: #121212}</style>"
        f'<body>{body}<script defer src="bert.js"></script><script defer src="ask.js"></script>',
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def page(browser: Any, site: Path) -> Iterator[Any]:
    """The widget, with its model loaded."""
    opened = browser.new_page(viewport={"width": 1000, "height": 900})
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto((site / "page.html").as_uri())
    opened.wait_for_selector(".course-ask[aria-busy=false]")
    yield opened
    opened.close()
    assert errors == []


def write(page: Any, text: str) -> None:
    """Type a text, and wait until the model has read it."""
    page.evaluate(
        """text => {
            const field = document.querySelector("textarea");
            field.value = text;
            field.dispatchEvent(new Event("input"));
        }""",
        text,
    )
    page.wait_for_selector(".course-ask[aria-busy=false]")


# What JavaScript computes of a text: ids, scores at every place, attention; floats as bytes in base64.
COMPUTE = """([name, text]) => {
    const model = window.kept?.[name] || new CourseBert(window.courseModels[name]);
    window.kept = {...window.kept, [name]: model};
    const {pieces, dropped} = model.read(text), ids = pieces.map((piece) => piece.id);
    const said = model.forward(ids, ids.map((_, place) => place));
    const pack = (array) => {
        const bytes = new Uint8Array(Float32Array.from(array).buffer), parts = [];
        for (let i = 0; i < bytes.length; i += 8192) parts.push(String.fromCharCode(...bytes.subarray(i, i + 8192)));
        return btoa(parts.join(""));
    };
    return {ids, dropped, scores: said.scores.map(pack), attention: said.attention.map((layer) => layer.map(pack))};
}"""


def unpack(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.float32)


def with_gaps(text: str) -> str:
    """What bert.js makes of a text first: [mask] in capitals, and underscores by themselves are gaps."""
    text = re.sub(r"\[mask\]", "[MASK]", text, flags=re.IGNORECASE | re.ASCII)
    return re.sub(r"(?<!\w)_+(?!\w)", "[MASK]", text)


def difference(page: Any, name: str, model: Any, tokenizer: WordPieceTokenizer, text: str) -> float:
    """The largest difference of a score or a weight between the browser and the library, on one text."""
    places = model.config.max_position_embeddings
    found = page.evaluate(COMPUTE, [name, text])
    whole = tokenizer.encode(with_gaps(text))
    kept = tokenizer.encode(with_gaps(text), max_length=places)
    assert found["ids"] == kept.input_ids, ascii(text)
    assert found["dropped"] == len(whole) - len(kept)
    kinds = live_model.segments(model, tokenizer, kept.input_ids)
    said = model(np.array([kept.input_ids]), token_type_ids=np.array([kinds]))
    scores = np.array([unpack(one) for one in found["scores"]])
    assert np.isfinite(scores).all()
    worst = float(np.abs(scores - said.prediction_logits.numpy()[0]).max())
    expected = live_model.answer(model, tokenizer, with_gaps(text)).attention
    for of_layer, found_layer in zip(expected, found["attention"], strict=True):
        for weights, packed in zip(of_layer, found_layer, strict=True):
            found_weights = unpack(packed).reshape(weights.shape)
            assert np.isfinite(found_weights).all()
            worst = max(worst, float(np.abs(found_weights - weights).max()))
    return worst


def test_the_scores_are_the_library_s(page, loaded):
    """The stored weights are float16, and both compute with them in float32: only the order of sums differs."""
    worst = {text: difference(page, "start", *loaded, text) for text in TEXTS}
    assert max(worst.values()) < TOLERANCE, max(worst, key=worst.__getitem__)


def test_erf_is_exact(page):
    xs = [*np.linspace(-7, 7, 2001).tolist(), 0.0, 1e-300, 1e-8, 40.0, -1e6]
    found = page.evaluate("xs => xs.map(CourseBert.erf)", xs)
    assert [x for a, x in zip(found, xs, strict=True) if not abs(a - math.erf(x)) < 1e-12] == []


def test_every_half_is_read(page):
    """Normal, subnormal, zero, of both signs; a model's weights are finite."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    model = {"weights": base64.b64encode(halves.tobytes()).decode(), "tensors": [["all", [len(halves)]]]}
    packed = page.evaluate(
        """stored => {
            const bytes = new Uint8Array(new CourseBert(stored).tensors.all.slice().buffer);
            return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
        }""",
        model,
    )
    assert np.array_equal(unpack(packed), halves.astype(np.float32))
    model["tensors"] = [["all", [3]]]
    with pytest.raises(Exception, match=f"the tensors need 3 numbers, there are {len(halves)}"):
        page.evaluate("stored => { new CourseBert(stored); }", model)


def half_model(folder: Path) -> tuple[Any, WordPieceTokenizer]:
    """A BERT of odd sizes in half precision, in `folder`."""
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *"abcdefghij.", "##a", "##bc", "cde"])
    config = BertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=15, num_hidden_layers=3, num_attention_heads=3,
        intermediate_size=7, max_position_embeddings=9, type_vocab_size=1, layer_norm_eps=1e-3, initializer_range=0.5,
    )  # fmt: skip
    random.manual_seed(1)
    save_pretrained(BertForPreTraining(config), folder, tokenizer)
    weights = {
        name: value.astype(np.float16) for name, value in load_file(folder / "model.safetensors").items()
    }
    save_file(weights, folder / "model.safetensors")
    (folder / "SHA256SUMS").unlink()
    return opened(folder)


def test_a_page_can_hold_several_models(page, loaded, tmp_path):
    small = half_model(tmp_path)
    page.evaluate(live_model.model_script("small", tmp_path))
    for text in ("abc _ cde.", "", "abc [SEP] _ cde", "j" * 20 + " _", "a b c d e f g h i j _"):
        assert difference(page, "small", *small, text) < TOLERANCE
    assert difference(page, "start", *loaded, FIRST) < TOLERANCE


def test_the_weights_are_below_two_megabytes():
    script = live_model.model_script("start")
    (weights,) = re.findall(r'^weights: "(.*)"$', script, re.MULTILINE)
    assert len(base64.b64decode(weights)) < 2_000_000
    assert len(script) < 2_700_000
    assert "</script" not in script
    assert "bert.pooler" not in script, "it guesses no words"


def test_a_model_in_single_precision_is_refused(tmp_path):
    save_pretrained(BertForPreTraining(BertConfig(20, 4, 1, 1, 4, max_position_embeddings=4)), tmp_path)
    with pytest.raises(ValueError, match=r"expected float16 tensors, got bert\.\S+ in float32"):
        live_model.model_script("none", tmp_path)


def test_a_separator_ends_the_first_segment(teller):
    """The page's [SEP] makes the pair that the library is given as two texts."""
    model, tokenizer = teller
    for one in STORY_EXAMPLES:
        a, sep, b = one.text.partition("[SEP]")
        (expected,) = fill_mask(model, tokenizer, a, pair=b if sep else None)
        (found,) = live_model.answer(model, tokenizer, one.text).guesses
        assert [word for word, _ in found] == [word.token for word in expected]
        assert [share for _, share in found] == pytest.approx(
            [word.probability for word in expected], abs=1e-6
        )


@pytest.mark.parametrize("name", ["start", "stories"])
def test_the_facts_are_those_of_the_stored_files(name):
    text = re.sub(r"<.*?>", " ", live_model.facts(name))
    last = (stored(name) / "evaluation.csv").read_text().strip().split("\n")[-1].split(",")
    for number in (f"{int(last[0]):,} steps", f"{float(last[2]):.2f} nats", f"{float(last[3]):.0%}"):
        assert number in text
    if name == "start":
        run = json.loads((stored("start") / "learning.json").read_text())
        assert f"{run['training_words']:,} words" in text


def test_the_page_s_example_is_what_the_model_says(loaded):
    page = (STATIC.parents[1] / "ask.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"Type \*(.*?)\* and its best guess is \*(.*?)\*", page)
    assert fill_mask(*loaded, with_gaps(said[0]))[0][0].token == said[1]


# --- The page --------------------------------------------------------------------------------------------

TOPS = """() => [...document.querySelectorAll(".tray, .list, .heads, .map, .told, #below")].map((box) => {
    const {x, y} = box.getBoundingClientRect();
    return [box.className || box.id, Math.round(x), Math.round(y)];
})"""
LIST = """name => [...document.querySelectorAll(`.${name} li`)]
    .map((row) => [row.querySelector(".word").textContent, row.querySelector(".share").lastChild.textContent.trim()])"""


def guesses(model: Any, tokenizer: WordPieceTokenizer, text: str, gap: int = 0) -> list[list[str]]:
    return [[one.token, f"{one.probability:.2f}"] for one in fill_mask(model, tokenizer, text)[gap]]


def drawn(page: Any) -> dict[str, str]:
    """What stands in the widget, as text, and how many squares the maps have."""
    return page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".pieces, .list, .heads, .map, .told, .counts")]
            .map((box) => [box.className, box.textContent.replace(/\\s+/g, " ")
                + box.querySelectorAll("path").length]))"""
    )


def test_the_script_draws_what_was_stored_and_moves_nothing(browser, site):
    """The stored example is the script's first answer to the letter."""
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.route("**/ask-start.js", lambda route: None)  # the model never comes
    page.goto((site / "page.html").as_uri(), wait_until="domcontentloaded")
    before, tops = drawn(page), page.evaluate(TOPS)
    page.unroute("**/ask-start.js")
    page.reload()
    page.wait_for_selector(".course-ask[aria-busy=false]")
    assert page.locator("button.piece").count() == 10, "nothing was drawn"
    assert drawn(page) == before
    assert page.evaluate(TOPS) == tops
    page.set_viewport_size({"width": 1280, "height": 900})
    below = page.evaluate("""() => {
        const box = document.querySelector(".course-ask .pieces").getBoundingClientRect();
        return box.bottom - document.querySelector(".course-ask .piece").getBoundingClientRect().bottom;
    }""")
    page.close()
    assert below < 12, "there is a hole below the pieces"


def test_typing_is_answered_once_it_pauses(page, loaded):
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    page.locator("textarea").fill("")
    for letter in "The file is opened _ reading.":
        page.locator("textarea").press_sequentially(letter)
        page.clock.run_for(100)
    assert page.locator(".piece").count() == 12, "it was asked while the reader typed"
    page.clock.run_for(30)
    assert page.locator(".piece").count() == 9
    assert page.evaluate(LIST, "before") == guesses(*loaded, "The file is opened [MASK] reading.")
    assert page.inner_text(".counts") == "9 pieces, 1 gap"
    assert re.fullmatch(r"\d+ ms in your browser", page.inner_text(".time"))


def test_hiding_a_piece_sets_both_answers_side_by_side(page, loaded):
    tops, heads = page.evaluate(TOPS), page.inner_html(".heads")
    plain, masked = FIRST, FIRST.replace("file", "[MASK]")
    page.get_by_role("button", name="hide file").click()
    assert page.evaluate(LIST, "before") == guesses(*loaded, plain)
    assert page.evaluate(LIST, "after") == guesses(*loaded, masked)
    assert page.evaluate(LIST, "itself") == guesses(*loaded, masked, gap=1)
    assert page.inner_text(".after li:first-child .was") == "0.40 →"
    assert page.inner_text(".truth .word").startswith("file")
    assert page.inner_text(".itself .quiet").endswith("guess 2 of 4,096")
    assert page.inner_html(".heads") != heads
    assert page.locator(".map .rows span").all_inner_texts().count("[MASK]") == 2
    assert page.inner_text(".says").startswith("[MASK] looks most at")
    assert page.evaluate(TOPS) == tops, "something moved"
    heard = page.inner_text(".heard")
    assert heard == "Best guess for gap 1: exception 0.64. “file” itself: 0.06, guess 2 of 4,096."
    page.get_by_role("button", name="show file again").click()
    assert page.locator(".after li").count() == page.locator(".itself li").count() == 0
    assert page.evaluate(TOPS) == tops


def test_each_gap_has_its_guesses(page, loaded):
    text = "The [MASK] value is [MASK]."
    write(page, text)
    assert page.inner_text(".before .title") == "Guesses for gap 1 of 2"
    page.locator("button.gap").nth(1).click()
    assert page.inner_text(".before .title") == "Guesses for gap 2 of 2"
    assert page.evaluate(LIST, "before") == guesses(*loaded, text, gap=1)


def test_a_text_without_a_gap_says_what_to_do(page):
    write(page, "The file is opened.")
    assert "There is no gap yet." in page.inner_text(".before")
    page.get_by_role("button", name="hide opened").click()
    assert page.inner_text(".after .quiet") == "There is no other gap."
    assert page.locator(".itself li").count() == 5


def test_the_button_inserts_a_gap_where_the_caret_is(page):
    write(page, "Return the value.")
    page.evaluate("document.querySelector('textarea').setSelectionRange(6, 10)")
    page.get_by_role("button", name="Insert a gap").click()
    assert page.input_value("textarea") == "Return [MASK] value."
    assert page.inner_text(".counts").endswith("1 gap")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"


def chip(page: Any, one: Example) -> Any:
    """The button of an example."""
    found = page.locator(f'.chip[data-text="{one.text}"]')
    return found.nth(1) if one.cover else found.first


def test_an_example_can_be_chosen(page, loaded):
    width = page.locator("button.gap").bounding_box()["width"]
    one = MODELS["start"].pairs[0].other
    chip(page, one).click()
    assert page.input_value("textarea") == one.text
    assert page.evaluate(LIST, "before") == guesses(*loaded, one.text)
    assert page.locator("button.gap").bounding_box()["width"] == width, "a longer guess would move the others"


def test_what_the_chips_say_is_so(loaded):
    """One letter turns the best guess; the right side does; and two guesses are of grammar alone."""
    letter, sides, world = MODELS["start"].pairs

    def best(text: str) -> str:
        return fill_mask(*loaded, text)[0][0].token

    assert [best(letter.one.text), best(letter.other.text)] == ["exception", "filename"]
    covered = re.sub(r"(?<=\[MASK\]).*", " [MASK]" * 6, sides.other.text)
    assert [best(sides.one.text), best(covered)] == ["socket", "file"]
    assert [best(world.one.text), best(world.other.text)] == ["implementation", "used"]


def test_the_right_side_can_be_covered(page, loaded):
    one = MODELS["start"].pairs[1].other
    chip(page, one).click()
    assert page.locator(".piece.hidden").all_inner_texts() == ["and", "wait", "for", "a", "message", "."]
    masked = re.sub(r"(?<=\[MASK\]).*", " [MASK]" * 6, one.text)
    assert page.evaluate(LIST, "after") == guesses(*loaded, masked)
    assert page.inner_text(".after .title") == "The same, with the right side covered"
    page.locator(".cover input").focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".piece.hidden").count() == 5
    page.locator("button.piece", has_text="open").click()  # one piece hidden, and nothing covered
    assert page.locator(".piece.hidden").all_inner_texts() == ["open"]
    assert page.input_value(".cover input") == "0"
    write(page, "Wait for the _")
    assert not page.is_visible(".cover")


def test_the_address_has_what_is_asked_and_brings_it_back(page, browser, site, loaded):
    home = (site / "page.html").as_uri()
    assert page.url == home, "what stands there at first needs no words"
    write(page, "Close the _ & read it, 100 %.")
    page.locator("button.piece", has_text="read").click()
    address = page.url
    assert address.startswith(f"{home}#model=start&text=Close+the+_+%26+read")
    told = page.evaluate(LIST, "after")
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(".piece.hidden")
    assert page.input_value("textarea") == "Close the _ & read it, 100 %."
    assert page.locator(".piece.hidden").inner_text() == "read"
    assert page.evaluate(LIST, "after") == told
    page.goto(f"{home}#model=start&text=Open+the+_+and+wait.&cover=2")  # the page is there already
    page.wait_for_selector(".piece.hidden")
    assert page.locator(".piece.hidden").all_inner_texts() == ["wait", "."]
    for bad in (
        "#text=",
        "#model=none&text=a+_&hide=99&cover=-1",
        "#text=%3Cimg+src%3Dx%3E&hide=x",
        "#nonsense",
    ):
        page.goto("about:blank")
        page.goto(home + bad)
        page.wait_for_selector(".course-ask[aria-busy=false]")
        assert page.locator(".piece.hidden").count() == 0


def test_the_link_can_be_copied(page, browser):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write(page, "Close the _.")
    page.locator(".link").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }")
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.default_value), dialog.dismiss()))
    page.locator(".link").click()
    assert asked == [page.url]


def test_what_does_not_fit_is_told(page):
    write(page, "the " * 70 + "_")
    assert page.locator(".piece").count() == 64
    assert page.inner_text(".counts") == "64 of 73 pieces, 0 gaps"
    assert page.inner_text(".cut") == "The model has 64 places: 9 pieces at the end did not fit."


def test_any_text_is_drawn(page):
    for text in HARD:
        write(page, text[:2000])
        assert page.locator(".piece").count() >= 2, ascii(text)
        assert page.locator(".course-ask img").count() == 0, "the reader's text became a part of the page"
        for button in page.locator("button.piece").all()[:1]:
            button.click()
        assert "NaN" not in page.inner_text(".course-ask"), ascii(text)


def test_a_piece_that_looks_like_html_is_text(page):
    write(page, "")
    page.evaluate(
        """() => {
            const pieces = window.courseModels.start.tokenizer.pieces;
            pieces[pieces.indexOf("exception")] = "<img src=x>";
        }"""
    )
    write(page, FIRST)
    assert page.inner_text(".before li:first-child .word") == "<img src=x>"
    assert page.locator(".course-ask img").count() == 0
    assert page.inner_text("button.gap small") == "<img src=x> 0.40"


def test_the_keyboard_does_all(page):
    page.focus(".link")
    page.keyboard.press("Tab")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "hide raise"
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "hide exist"
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "show exist again", "the focus is lost"
    assert page.locator(".after li").count() == 5
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "range"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "1 0"
    before = page.inner_html(".map")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.value") == "1 1"
    assert page.inner_html(".map") != before
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "map"
    for key, row in (
        ("Home", 1),
        ("ArrowDown", 2),
        ("ArrowDown", 3),
        ("ArrowUp", 2),
        ("End", 12),
        ("ArrowDown", 12),
    ):
        page.keyboard.press(key)
        assert page.get_attribute(".map", "aria-valuenow") == str(row)
    assert page.get_attribute(".map", "aria-valuetext") == page.inner_text(".says")


def test_a_row_under_the_pointer_is_told(page, loaded):
    page.locator(".map svg").scroll_into_view_if_needed()
    box = page.locator(".map svg").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 6.5 / 12 * box["height"])
    said = live_model.answer(*loaded, FIRST)
    weights = said.attention[1][0][6]
    j = int(weights.argmax())
    assert page.inner_text(".says").startswith(f"file looks most at: {said.pieces[j]} {weights[j]:.2f}")
    page.locator(".levels span").nth(2).hover()
    assert page.inner_text(".says").startswith("an looks most at")


def test_without_a_script_the_example_stands_there(browser, site, loaded):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "page.html").as_uri())
    assert not page.is_visible("textarea")
    assert not page.is_visible(".after")
    assert "Without JavaScript" in page.inner_text(".course-ask")
    rows = [row.split() for row in page.locator(".before li").all_inner_texts()]
    assert rows == guesses(*loaded, FIRST)
    assert page.locator(".map svg").is_visible()
    context.close()


def test_a_model_that_does_not_come_is_told(browser, site, tmp_path):
    for name in ("page.html", "bert.js", "ask.js", "ask.css"):
        shutil.copy(site / name, tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("document.querySelector('.counts').textContent.includes('could not be loaded')")
    page.fill("textarea", "The _ is here.")
    assert page.locator(".before li").count() == 5
    page.close()


# --- The second model ------------------------------------------------------------------------------------

POSSIBLE = """() => [...document.querySelectorAll(".before li")].map((row) =>
    [row.querySelector(".word").textContent, row.querySelector("span.possible")?.textContent])"""
WAIT_FOR = "text => document.querySelector('textarea').value === text"


@pytest.fixture(scope="module")
def stories(browser: Any, site: Path) -> Iterator[Any]:
    """The widget after the keyboard has chosen the model of stories; `before` has the requests until then."""
    opened = browser.new_page(viewport={"width": 1000, "height": 900})
    asked: list[str] = []
    errors: list[str] = []
    opened.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[1]))
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto((site / "page.html").as_uri())
    opened.wait_for_selector(".course-ask[aria-busy=false]")
    write(opened, "The _ of documentation.")
    opened.before = list(asked)
    opened.locator("body").press("Tab")
    opened.keyboard.press("ArrowRight")
    opened.wait_for_function(WAIT_FOR, arg=STORY_EXAMPLES[0].text)
    opened.wait_for_selector(".course-ask[aria-busy=false]")
    opened.asked = asked
    yield opened
    opened.close()
    assert errors == []


def test_the_short_widget_loads_the_model_when_it_is_asked(browser, site, loaded):
    """Its stored example stands there before; the piece that was pressed first is hidden then."""
    whole = (site / "page.html").read_text(encoding="utf-8")
    short = whole.replace('class="course-ask course-colours"', 'class="course-ask course-colours short"')
    assert short != whole
    learned = live_model._learned(stored("start"))
    assert short.count(live_model._AFTER) == 1
    short = short.replace(live_model._AFTER, learned)
    assert live_model.page({"start": "x.js"}, short=True).startswith(
        '<div class="course-ask course-colours short"'
    )
    (site / "short.html").write_text(short, encoding="utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "short.html").as_uri(), wait_until="load")
    page.wait_for_timeout(300)
    assert not [address for address in asked if "ask-start" in address]
    before = page.locator(".before li .word").all_inner_texts()
    points = json.loads((stored("start") / "learning.json").read_text("utf-8"))["points"]
    told = [
        f"step {one['step']:,}: {one['guesses'][0][0]}" for one in points if one["step"] in live_model.LEARNED
    ]
    assert page.locator(".learned .word").all_inner_texts() == told
    assert told[-1] == "step 12,000: exception"
    page.locator(".piece", has_text="file").first.click()
    page.wait_for_selector(".piece.hidden")
    assert [address for address in asked if "ask-start" in address]
    assert page.locator(".piece.hidden").inner_text().startswith("file")
    assert page.locator(".before li .word").all_inner_texts() == before
    assert page.locator(".after li").count() == len(before)
    assert page.locator(".learned").count() == 0
    page.close()


def test_the_second_script_is_loaded_when_it_is_chosen(stories):
    assert "ask-start.js" in stories.before, "nothing was watched"
    assert "ask-stories.js" not in stories.before
    assert stories.asked.count("ask-stories.js") == 1


def test_the_scores_of_stories_are_the_library_s(stories, teller):
    worst = {text: difference(stories, "stories", *teller, text) for text in STORY_TEXTS}
    assert max(worst.values()) < TOLERANCE, max(worst, key=worst.__getitem__)


def test_the_examples_stand_beside_the_best_possible(stories, teller):
    for one in STORY_EXAMPLES:
        chip(stories, one).click()
        said = live_model.answer(*teller, one.text).guesses[0]
        assert stories.evaluate(LIST, "before") == [[word, f"{share:.2f}"] for word, share in said]
        possible = best_possible(one)
        assert stories.evaluate(POSSIBLE) == [
            [word, f"best possible {possible.get(word, 0):.2f}"] for word, _ in said
        ]
    assert "Best possible: copies 0.50, reads 0.50." in stories.inner_text(".heard")
    write(stories, STORY_EXAMPLES[0].text + " ")
    assert {exact for _, exact in stories.evaluate(POSSIBLE)} == {None}, "only the examples were computed"


def test_the_heads_of_the_second_model_can_be_chosen(stories):
    assert stories.locator(".head").count() == 8
    before = stories.inner_html(".map")
    stories.locator(".head input").nth(6).check()
    assert stories.inner_html(".map") != before
    assert stories.get_attribute(".map", "aria-label").startswith("Attention of layer 2, head 3")


def test_unknown_words_are_named_and_the_known_ones_listed(stories, teller):
    write(stories, "Mary has a <b>pizza</b> , _ [UNK] a pizza .")
    assert stories.inner_text(".strange") == (
        "“a”, “<”, “b”, “>”, “pizza”, 2 more are not in the model’s vocabulary: it reads [UNK] for each of them."
    )
    assert stories.inner_text(".heard").endswith(stories.inner_text(".strange"))
    write(stories, f"mary has {'x' * 150} .")
    assert stories.inner_text(".strange").startswith(f"“{'x' * 20}…” is not in")
    write(stories, "mary has [UNK] _ .")
    assert stories.locator(".strange").count() == 0
    stories.evaluate("() => { document.querySelector('.words').open = false; }")
    stories.locator(".words summary").click()
    words = stories.inner_text(".words p").split()
    assert words == SETTINGS["light"].words()
    assert stories.inner_text(".words summary") == f"The {len(words)} words and marks that it knows"
    assert f"knows {len(words)} words and marks" in (STATIC.parents[1] / "ask.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(stories, scheme):
    write(stories, "mary has a pizza . [SEP] _ eats it .")
    stories.evaluate("() => { document.querySelector('.words').open = true; }")
    stories.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
    found = axe(stories, context=".course-ask", options={"resultTypes": ["violations"]})
    stories.evaluate("() => { document.documentElement.dataset.theme = 'light'; }")
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


def test_each_model_keeps_its_text(stories, loaded):
    write(stories, "mary has one _ .")
    stories.focus(".models [value=stories]")
    stories.keyboard.press("ArrowLeft")
    assert stories.input_value("textarea") == "The _ of documentation."
    assert stories.evaluate(LIST, "before") == guesses(*loaded, "The [MASK] of documentation.")
    assert stories.locator(".head").count() == 4
    assert not stories.is_visible(".words")
    assert stories.locator(".chip").first.get_attribute("data-text") == FIRST
    stories.keyboard.press("ArrowRight")
    assert stories.input_value("textarea") == "mary has one _ ."
    assert stories.locator(".head").count() == 8
    assert stories.asked.count("ask-stories.js") == 1


def test_a_second_model_that_does_not_come_leaves_the_first(browser, site, tmp_path, loaded):
    for name in ("page.html", "bert.js", "ask.js", "ask.css", "ask-start.js"):
        shutil.copy(site / name, tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".course-ask[aria-busy=false]")
    for _ in range(2):  # it tries again
        page.locator(".models [value=stories]").click()
        page.wait_for_selector(".models [value=start]:checked")
        assert page.inner_text(".counts") == "The model “Stories” could not be loaded."
    write(page, "The file is opened _ reading.")
    assert page.evaluate(LIST, "before") == guesses(*loaded, "The file is opened [MASK] reading.")
    page.close()


# --- The examples of stories -----------------------------------------------------------------------------


def test_the_best_possible_guesses_are_the_grammar_s():
    """The grammar has two pronouns for a name, and half of the holders are men."""
    alone = best_possible(STORY_EXAMPLES[0])
    assert alone == pytest.approx({"he": 1 / 3, "she": 1 / 3, "john": 1 / 6, "mary": 1 / 6})
    settled = best_possible(STORY_EXAMPLES[1])
    assert settled["he"] == pytest.approx(2 / 3, abs=1e-3)
    assert settled["john"] == pytest.approx(1 / 3, abs=1e-3)
    for example, word in zip(STORY_EXAMPLES[2:5], ("mary", "john", "them"), strict=True):
        assert best_possible(example)[word] > 0.999


@pytest.mark.parametrize("one", STORY_EXAMPLES, ids=lambda one: one.says)
def test_the_model_is_near_the_best_possible_and_needs_the_separator(one, teller):
    """What the page says of its examples; and no word of weight is missing among the guesses that it shows."""
    said = dict(live_model.answer(*teller, one.text).guesses[0])
    possible = best_possible(one)
    assert one.word in possible
    assert {word for word, share in possible.items() if share > 0.001} <= set(said)
    assert max(abs(share - possible.get(word, 0)) for word, share in said.items()) < 0.06
    if "[SEP]" in one.text:
        whole = dict(live_model.answer(*teller, one.text.replace("[SEP] ", "")).guesses[0])
        assert sum(whole.get(word, 0) * (share > 0.001) for word, share in possible.items()) < 0.8


def test_a_text_that_is_no_story_has_no_best_possible():
    with pytest.raises(GrammarError, match="the grammar writes no such pair"):
        best_possible(Example("mary has [MASK] .", "it"))
    with pytest.raises(ValueError, match=re.escape("expected a text with one [MASK], got '[MASK] [MASK]'")):
        best_possible(Example("[MASK] [MASK]", "it"))
