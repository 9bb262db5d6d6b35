"""Each page of the built book, in a browser that has no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from building import pages

pytestmark = pytest.mark.no_arrays


PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


def test_the_pages_are_those_of_the_table_of_contents(site: Path):
    built = {
        path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts
    }
    assert built == {f"{name}.html" for name in pages()} | {"index.html", "404.html", "search.html"}


@pytest.mark.parametrize("name", pages())
def test_each_image_says_what_is_to_be_seen(site: Path, name: str):
    main = (site / f"{name}.html").read_text(encoding="utf-8").partition("<main")[2].partition("</main>")[0]
    images = re.findall(r"<img\b[^>]*>", main)
    assert [image[:80] for image in images if not re.search(r'\balt="[^"]*[^"\s]', image)] == []


def test_nothing_is_asked_of_the_network(visited: Any):
    assert visited.requests == []


def test_no_script_fails(visited: Any):
    assert visited.errors == []


def test_formulas_are_typeset(visited: Any):
    page = visited.page
    bare = "e => e.filter(m => !m.querySelector('mjx-container')).map(m => m.textContent)"
    assert page.eval_on_selector_all(".math", bare) == []
    assert page.eval_on_selector_all("[data-mml-node=merror]", "e => e.map(m => m.textContent)") == []
    prose = """main => {
        const copy = main.cloneNode(true);
        copy.querySelectorAll("pre, code, script, style, mjx-container").forEach(e => e.remove());
        return copy.textContent;
    }"""
    text = page.eval_on_selector("main", prose)
    assert [mark for mark in ("\\(", "\\[", "$$", "\\begin{") if mark in text] == []


def test_the_formulas_of_all_pages_are_typeset(site: Path, visit: Any):
    """All on one page, where only the slow tests open each of them."""
    formula = re.compile(r'<(div|span) class="[^"]*\bmath\b[^"]*"[^>]*>.*?</\1>', re.DOTALL)
    found = {
        one[0] for name in pages() for one in formula.finditer((site / f"{name}.html").read_text("utf-8"))
    }
    assert len(found) > 500
    wrong = """async (formulas) => {
        const main = document.querySelector("main");
        main.innerHTML = formulas.join(" ");
        await MathJax.typesetPromise([main]);
        return [...main.querySelectorAll(".math")]
            .filter((one) => !one.querySelector("mjx-container") || one.querySelector("[data-mml-node=merror]"))
            .map((one) => one.textContent);
    }"""
    assert visit("book/one_head").page.evaluate(wrong, sorted(found)) == []


def test_images_are_loaded(visited: Any):
    broken = "e => e.filter(i => !i.naturalWidth).map(i => i.src.slice(0, 120))"
    assert visited.page.eval_on_selector_all("img", broken) == []


def test_each_icon_is_drawn(visited: Any):
    page = visited.page
    page.set_viewport_size(PHONE)  # where the bar has the most of them
    icons = """all => all.map((icon) => {
        const mask = getComputedStyle(icon).maskImage, box = icon.getBoundingClientRect();
        return [icon.className, mask.startsWith('url("data:image/svg'), box.width && box.height / box.width];
    })"""
    found = page.eval_on_selector_all("[class*='fa-']", icons)
    page.set_viewport_size(DESK)
    assert {name for name, drawn, _ in found if not drawn} == set()
    assert {name for name, _, shape in found if shape and not 0.9 < shape < 1.1} == set()
    assert len([name for name, _, shape in found if shape]) >= 4
    assert page.locator(":is(script, link)[src*=fontawesome], link[href*=fontawesome]").count() == 0


def test_formulas_are_no_stops_of_the_tab_key(visited: Any):
    wide = "e => e.filter(m => m.tabIndex >= 0 && !('cut' in m.dataset)).map(m => m.textContent)"
    assert visited.page.eval_on_selector_all("mjx-container", wide) == []


def test_players_answer(visited: Any):
    for button in visited.page.query_selector_all(".course-prediction button[aria-expanded=false]"):
        button.click()  # a player may be the answer to a prediction
    for player in visited.page.query_selector_all(".course-player"):
        assert player.query_selector(".controls").is_visible()
        slider = player.query_selector("input[type=range]")

        def state(player: Any = player) -> tuple[str, str]:
            return player.query_selector(".stage").inner_html(), player.query_selector(".text").inner_text()

        slider.focus()
        slider.press("Home")
        first = state()
        slider.press("ArrowRight")
        second = state()
        assert first[0] != second[0], "the slider does not change the picture"
        assert first[1] != second[1], "the slider does not change the text"
        player.query_selector("button[aria-label=back]").click()
        assert state() == first


def test_maps_answer(visited: Any):
    page = visited.page
    page.mouse.move(0, 0)  # a map that scrolls under the pointer answers to it
    where = "() => [document.activeElement.parentElement.sectionRowIndex, document.activeElement.cellIndex]"
    for widget in page.query_selector_all(".course-map"):
        text = widget.query_selector("[aria-live]")
        said = [text.inner_text()]
        widget.query_selector("td[tabindex='0']").focus()
        said.append(text.inner_text())
        row, column = page.evaluate(where)
        for key in ("ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
            said.append(text.inner_text())
        assert page.evaluate(where) == [row + 1, column + 1]
        assert len(set(said)) == 4, f"the arrow keys do not change the text: {said}"
