"""The page of what the heads look at: its numbers, the texts that could break it, and its use by mouse and by keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bert_course.stored import stored
from browsers import skip
from html_elements import Page
from minigrad.bert.__main__ import main
from minigrad.bert.look import Head, Look, Share, surface_patterns
from minigrad.bert.look_page import SIGN, look_page, packed, require_place, write_page
from minigrad.bert.predict import Filling

TEXT = "The [MASK] is open."
TOKENS = ["[CLS]", "the", "[MASK]", "is", "open", ".", "[SEP]"]


def made_up(
    layers: int = 2,
    of_layer: int = 3,
    tokens: list[str] = TOKENS,
    texts: tuple[str, ...] = (TEXT,),
    seed: int = 0,
) -> Look:
    """A look at heads with random weights, each leaning to one of the patterns."""
    rng, n = np.random.default_rng(seed), len(tokens)
    places = surface_patterns(tokens)
    heads = []
    for i in range(layers * of_layer):
        weights = np.exp(rng.standard_normal((n, n)) + 4 * list(places.values())[i % 6])
        weights /= weights.sum(axis=1, keepdims=True)
        shares = {
            name: Share(float((weights * where).sum() / n), float(where.mean()), n)
            for name, where in places.items()
        }
        entropy = float(-(weights * np.log(weights)).sum(axis=1).mean())
        heads.append(Head(i // of_layer + 1, i % of_layer + 1, weights, entropy, shares))
    fillings = {
        place: [Filling("door", 0.75), Filling("<b>", 0.125)]
        for place, token in enumerate(tokens)
        if token == "[MASK]"
    }
    return Look(list(texts), list(tokens), [0] * n, layers, heads, fillings)


def data_in(page: str) -> dict[str, Any]:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(data)


def unpacked(text: str) -> np.ndarray:
    return np.array([int(text[i : i + 2], 36) for i in range(0, len(text), 2)]) / 1000


# --- What is in the file ---------------------------------------------------------------------------------


@pytest.mark.no_arrays
def test_the_page_holds_the_numbers():
    found = made_up()
    data = data_in(look_page(found, "mine"))
    assert data["tokens"] == TOKENS
    assert [(one["layer"], one["number"]) for one in data["heads"]] == [
        (a, b) for a in (1, 2) for b in (1, 2, 3)
    ]
    for head, one in zip(found.heads, data["heads"], strict=True):
        weights = unpacked(one["weights"]).reshape(7, 7)
        np.testing.assert_allclose(weights, head.weights, rtol=0, atol=0.0005 + 1e-12)
        assert one["entropy"] == pytest.approx(head.entropy, abs=0.0005)
        assert (one["pattern"], one["strongest"]) == (head.pattern, head.strongest)
        assert {name: share[0] for name, share in one["shares"].items()} == pytest.approx(
            {name: share.share for name, share in head.shares.items()}, abs=0.0005
        )


@pytest.mark.no_arrays
def test_weights_of_0_and_1_and_what_is_between():
    assert packed(np.array([[0, 1], [0.0004, 0.0355]])) == "00rs0010"
    assert unpacked("00rs000z").tolist() == [0, 1, 0, 0.035]


@pytest.mark.no_arrays
def test_without_a_script_there_is_a_table_of_the_heads():
    found = made_up()
    page = Page(look_page(found, "mine"))
    rows = page.texts("tr")
    for head in found.heads:
        share = head.shares[head.strongest]
        (row,) = (row for row in rows if row.startswith(head.name))
        assert f"{100 * share.share:.1f} %{100 * share.even:.1f} %{head.entropy:.2f}" in row
    assert "need JavaScript" in page.texts("noscript")[0]


@pytest.mark.no_arrays
def test_bert_base_with_30_tokens_stays_below_a_megabyte():
    page = look_page(made_up(12, 12, ["[CLS]", *(f"word{i}" for i in range(28)), "[SEP]"]), "base")
    assert len(page.encode()) < 500_000


@pytest.mark.no_arrays
def test_the_page_asks_nothing_of_a_network():
    page = look_page(made_up(), "mine")
    assert "default-src 'none'" in page
    assert "//" not in re.sub(r"(?m)(^|  )// .*", "", page)
    assert not re.search(r"\bsrc=|@import|url\(|fetch\(", page)


HOSTILE = [
    "</script><script>document.title = 'broken'</script>",
    "<!--<script>",
    '" onfocus="document.title = 1',
    "it's <b>bold</b> & \\ more",
    "{{DATA}} {{TEXT}} {{NO}}",
    r"\1 \g<0>",
    "👩‍👩‍👧 \u202eesrever \u2028 \udc80",
]


@pytest.mark.no_arrays
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_hostile_text_stays_a_text(text):
    """As text, token, filling, name of the model and note."""
    found = made_up(tokens=["[CLS]", text, "[MASK]", "[SEP]"], texts=(text, text))
    found.fillings[2][0] = Filling(text, 0.5)
    page = look_page(found, text, [text])
    harmless = look_page(made_up(tokens=["[CLS]", "x", "[MASK]", "[SEP]"], texts=("x", "x")), "x", ["x"])
    page.encode()
    tags = [(tag, list(attributes)) for tag, attributes, _ in Page(page).elements]
    assert tags == [(tag, list(attributes)) for tag, attributes, _ in Page(harmless).elements]
    spelled = text.replace("\u202e", "\\u202e").replace("\u2028", "\\u2028").replace("\udc80", "\\udc80")
    spelled = spelled.replace("\u200d", "\\u200d")
    assert Page(page).texts("q") == [spelled, spelled]
    assert data_in(page)["tokens"][1] == spelled


@pytest.mark.no_arrays
def test_what_is_not_overwritten(tmp_path):
    path = tmp_path / "look.html"
    write_page(path, look_page(made_up(), "first"))
    write_page(path, look_page(made_up(), "second"))
    assert "Model: second" in path.read_text(encoding="utf-8")
    other = tmp_path / "notes.html"
    other.write_text("mine" + " " * 2000 + SIGN)
    with pytest.raises(ValueError, match=r"notes\.html is there already and is no page of look: .* --force"):
        write_page(other, "")
    assert other.read_text().startswith("mine")
    write_page(other, "new", force=True)
    assert other.read_text() == "new"
    with pytest.raises(ValueError, match=r"is a folder: name a file in it, such as .*look\.html"):
        require_place(tmp_path, force=True)
    with pytest.raises(ValueError, match=r"there is no folder .*nowhere to write look\.html into"):
        require_place(tmp_path / "nowhere" / "look.html", force=True)
    with pytest.raises(ValueError, match="is no regular file"):
        require_place(Path("/dev/null"), force=True)
    with pytest.raises(OSError, match="too long"):
        write_page(tmp_path / ("x" * 300), "")


# --- The command -----------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_prints_a_table_and_writes_the_page(here, capsys):
    assert main(["look", "--model", str(stored("start")), "Raise an [MASK] if the file does not exist."]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "12 tokens: [CLS] raise an [MASK] if the file does not exist . [SEP]\n   exception "
    )
    assert re.search(r"^1-2 +the token after +4\d\.\d% +8\.3% +1\.\d\d$", out, re.MULTILINE)
    assert out.endswith("\nAll heads are on the page look.html: open it in a browser.\n")
    page = (here / "look.html").read_text(encoding="utf-8")
    assert "Model: trained, 2 layers of 2 heads, 12 tokens." in page
    assert str(stored("start").parent) not in page
    weights = unpacked(data_in(page)["heads"][1]["weights"]).reshape(12, 12)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=12 * 0.0005)
    assert weights[1].argmax() == 2  # of 1-2, "raise": on the token after
    assert [path.name for path in here.iterdir()] == ["look.html"]


@pytest.mark.parametrize(
    ("words", "texts", "told"),
    [
        (["It is open."], ["It is open."], True),
        (["--model", "start", "It is open."], ["It is open."], False),
        (["--model", "start", "It is open.", "It is closed."], ["It is open.", "It is closed."], False),
        (["--force", "It is open.", "It is closed."], ["It is open.", "It is closed."], True),
        (["It is open.", "It is closed.", "--model=a model"], ["It is open.", "It is closed."], False),
    ],
)
def test_which_argument_is_what(here, capsys, words, texts, told):
    for name in ("start", "a model"):
        (here / name).symlink_to(stored("start"))
    assert main(["look", *words]) == 0
    assert ("no model is named" in capsys.readouterr().err) is told
    assert Page((here / "look.html").read_text(encoding="utf-8")).texts("q") == texts


def test_mistakes_on_the_command_line(here, failing, saved, run, monkeypatch):
    start = str(stored("start"))
    assert failing("look", "--model", "runs/none", "It is open.").startswith("there is no folder runs/none")
    assert "104 tokens with [CLS] and [SEP], more than the 64 positions" in failing(
        "look", "--model", start, "the " * 102
    )
    assert failing("look", "--model", start, " ") == "the text has no tokens: ' '"
    assert "there is no folder nowhere to write x.html" in failing(
        "look", "--model", start, "It is.", "--out", "nowhere/x.html"
    )
    (here / "mine.html").write_text("mine")
    assert "is no page of look" in failing(
        "look", "--model", "runs/none", "It is open.", "--out", "mine.html"
    )
    assert (here / "mine.html").read_text() == "mine"
    (saved / "vocab.txt").unlink()
    assert failing("look", "--model", saved, "It is open.").endswith(
        "has no vocab.txt, which this command needs"
    )
    assert not (here / "look.html").exists()


def test_a_run_of_any_length_and_heads_without_a_pattern(here, run, capsys, monkeypatch):
    assert main(["look", "--model", str(run / "run"), "bal"]) == 0
    assert "Model: run, 1 layer of 2 heads" in (here / "look.html").read_text(encoding="utf-8")
    even = np.full((1, 2, 3, 3), 1 / 3)
    monkeypatch.setattr("minigrad.bert.look._weights", lambda model, encoding: even)
    capsys.readouterr()
    assert main(["look", "--model", str(stored("start")), "the"]) == 0
    assert "Each of the 2 heads is mixed: no surface pattern stands out." in capsys.readouterr().out


# --- In a browser ----------------------------------------------------------------------------------------


@pytest.fixture
def opened(browser, tmp_path) -> Iterator[Any]:
    """`opened(found)`: the page of it, from a file; fails in the end if the console has said anything."""
    said: list[str] = []
    pages = []

    def show(found: Look, **settings: Any) -> Any:
        path = tmp_path / "look.html"
        write_page(path, look_page(found, "mine"))
        page = browser.new_page(**settings)
        pages.append(page)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if request.url[:5] != "file:" else None)
        page.goto(path.as_uri())
        return page

    yield show
    for page in pages:
        page.close()
    assert said == []


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.dataset.head || document.activeElement.textContent")


@pytest.mark.no_arrays
def test_by_keys_alone(opened):
    found = made_up()
    page = opened(found)
    assert page.text_content("#name") == f"Head {found.pronounced()[0].name}"
    page.focus("#sort")
    page.keyboard.press("Tab")
    assert focused(page) == found.pronounced()[0].name
    page.keyboard.press("Home")
    walk = [
        ("ArrowRight", "1-2"),
        ("ArrowDown", "2-2"),
        ("ArrowLeft", "2-1"),
        ("ArrowUp", "1-1"),
        ("ArrowUp", "1-1"),
    ]
    for key, name in walk:
        page.keyboard.press(key)
        assert focused(page) == name
        assert page.text_content("#name") == f"Head {name}"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert focused(page) == "Head 1-2"
    page.keyboard.press("Escape")
    assert focused(page) == "1-2"
    assert page.evaluate("location.hash") == "#1-2"
    page.keyboard.press("End")
    assert page.is_disabled("#after")


def lit_numbers(page: Any, side: str) -> dict[int, float]:
    """The numbers beside the tokens of one side."""
    texts = page.eval_on_selector_all(f".side.{side} em", "all => all.map(one => one.textContent)")
    return {place: float(text) for place, text in enumerate(texts) if text}


def of_at_least(weights: np.ndarray) -> dict[int, float]:
    return {place: float(f"{w:.3f}") for place, w in enumerate(np.round(weights, 3)) if w >= 0.02}


@pytest.mark.no_arrays
def test_a_token_lights_its_weights_alone(opened):
    found = made_up()
    weights = found.heads[1].weights
    page = opened(found)
    page.click("[data-head='1-2']")
    assert page.locator(".arcs path").count() == (np.round(weights, 3) >= 0.02).sum()
    page.hover(".side.asks button:nth-child(3)")
    assert lit_numbers(page, "answers") == pytest.approx(of_at_least(weights[2]))
    assert page.locator(".arcs path:not(.off)").count() == len(of_at_least(weights[2]))
    page.hover("#name")
    assert lit_numbers(page, "answers") == {}
    page.focus(".side.asks button[tabindex='0']")
    page.keyboard.press("ArrowDown")
    assert lit_numbers(page, "answers") == pytest.approx(of_at_least(weights[1]))
    page.keyboard.press("ArrowRight")
    assert lit_numbers(page, "asks") == pytest.approx(of_at_least(weights[:, 1]))
    page.keyboard.press("Enter")
    page.focus("#name")
    assert lit_numbers(page, "asks") == pytest.approx(of_at_least(weights[:, 1]))  # kept
    page.keyboard.press("Escape")
    assert lit_numbers(page, "asks") == {}
    page.keyboard.press("Escape")
    assert focused(page) == "1-2"


@pytest.mark.no_arrays
def test_the_map_reads_out_each_weight(opened):
    found = made_up()
    page = opened(found)
    page.click("[data-head='2-3']")
    labels = page.eval_on_selector_all(".map tbody td", "all => all.map(one => one.ariaLabel)")
    expected = [
        f"{a} to {b}: {np.round(w, 3):.3f}"
        for a, row in zip(TOKENS, found.heads[5].weights, strict=True)
        for b, w in zip(TOKENS, row, strict=True)
    ]
    assert labels == expected
    page.focus(".map td[tabindex='0']")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    weight, top = found.heads[5].weights[0][2], found.heads[5].weights[0].argmax()
    assert page.text_content(".reads").startswith(
        f"“[CLS]” gives {weight:.3f} of its weight to “[MASK]”; most, "
    )
    assert page.text_content(".reads").endswith(f"goes to “{TOKENS[top]}”.")


@pytest.mark.no_arrays
@pytest.mark.parametrize("key", ["pattern", "entropy, lowest first", "share: the token before"])
def test_heads_in_another_order(opened, key):
    found = made_up()
    page = opened(found)
    page.select_option("#sort", key)
    names = page.eval_on_selector_all(".head", "all => all.map(one => one.dataset.head)")
    by = {
        "entropy, lowest first": lambda head: head.entropy,
        "share: the token before": lambda head: -head.shares["previous"].share,
    }
    if key in by:
        assert names == [head.name for head in sorted(found.heads, key=by[key])]
    else:
        assert sorted(names) == [head.name for head in found.heads]
        titles = page.eval_on_selector_all(".heads h3", "all => all.map(one => one.textContent)")
        assert len(titles) == len({head.pattern for head in found.heads}) > 1
    page.focus(f"[data-head='{names[0]}']")
    page.keyboard.press("ArrowRight")
    assert focused(page) == names[1]


@pytest.mark.no_arrays
def test_small_maps_are_drawn_in_the_colour_of_the_scheme(opened):
    found = made_up()
    page = opened(found)
    read = """() => {
      const copy = new OffscreenCanvas(7, 7).getContext("2d", {willReadFrequently: true});
      copy.drawImage(document.querySelector("[data-head='1-1'] canvas"), 0, 0);
      return Array.from(copy.getImageData(0, 0, 7, 7).data);
    }"""
    light = np.array(page.evaluate(read)).reshape(7, 7, 4)
    np.testing.assert_allclose((light[..., 3] / 255) ** 2, found.heads[0].weights, atol=0.01)
    page.click("#scheme")
    dark = np.array(page.evaluate(read)).reshape(7, 7, 4)
    i, j = np.unravel_index(found.heads[0].weights.argmax(), (7, 7))
    assert dark[i, j, :3].sum() > light[i, j, :3].sum() + 100
    assert page.text_content("#scheme") == "Light"


@pytest.mark.no_arrays
def test_an_address_opens_its_head(opened, tmp_path):
    page = opened(made_up())
    page.goto((tmp_path / "look.html").as_uri() + "#2-1")
    page.reload()
    assert page.text_content("#name") == "Head 2-1"
    page.evaluate("location.hash = '#1-3'")
    page.wait_for_function("document.querySelector('#name').textContent === 'Head 1-3'")


@pytest.mark.no_arrays
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_hostile_text_in_the_browser(opened, text):
    page = opened(made_up(tokens=["[CLS]", text, "[MASK]", "[SEP]"], texts=(text,)))
    page.hover(".side.asks button:nth-child(2)")
    page.focus(".map td[tabindex='0']")
    assert page.title().startswith("What the heads look at: ")
    assert page.locator(".map tbody td").count() == 16
    assert page.text_content(".side.asks button:nth-child(2) bdi") == data_in(page.content())["tokens"][1]


@pytest.mark.no_arrays
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("of_layer", [3, 12])
def test_nothing_is_wider_than_the_screen(opened, width, of_layer):
    tokens = ["[CLS]", *(f"word{i}" for i in range(28)), "[SEP]"]
    page = opened(made_up(4, of_layer, tokens), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("(grid => grid.scrollWidth <= grid.clientWidth)(document.querySelector('.heads'))")
    sizes = page.eval_on_selector_all(".head", "all => all.map(one => one.getBoundingClientRect().width)")
    assert min(sizes) >= 24
    page.click(f"[data-head='4-{of_layer}']")
    page.wait_for_timeout(50)
    if width == 390:  # the head is below the others: the page goes there
        assert 0 <= page.locator("#name").bounding_box()["y"] < 200


@pytest.mark.no_arrays
def test_without_javascript(opened):
    page = opened(made_up(), java_script_enabled=False)
    assert not page.is_visible("#explorer")
    assert page.is_visible(".table td")
    assert page.locator(".table tbody tr").count() == 6


@pytest.mark.no_arrays
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened, scheme):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        skip("axe-playwright-python is not installed")
    page = opened(made_up(), color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelector('details').open = true")
    page.click("[data-head='1-2']")
    page.click(".side.asks button:nth-child(2)")
    results = Axe().run(page, options={"resultTypes": ["violations"]}).response
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in results["violations"]] == []
