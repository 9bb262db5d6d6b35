"""The code boxes of a site whose cells run: Run, Edit, Reset, Stop, what they put out, and what a reload keeps.

Python is a stand-in here (fake_worker.js): what is tested is the page.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from building import build
from running_site import CELLS, SENTENCE

from browsers import wait_for

pytestmark = pytest.mark.no_arrays

PAGE = "book/arrays"
REFUSE = """() => { throw new DOMException("refused", "SecurityError"); }"""


def cell(page: Any, name: str) -> Any:
    """The cell's box."""
    return page.locator(f".cell[data-cell='{name}']")


def button(page: Any, name: str, text: str) -> Any:
    """One of its buttons, by its text."""
    return cell(page, name).locator(".course-run-button", has_text=text).first


def run(page: Any, name: str) -> None:
    """Run a cell and wait until it has."""
    button(page, name, "Run").click()
    said(page, name, "ran here in")


def said(page: Any, name: str, words: str) -> None:
    """Wait until the row under a cell says so."""
    cell(page, name).locator(".course-run-status", has_text=words).wait_for(timeout=15_000)


# A look from outside can miss what stands there for a moment; this one is called at each change.
RUN_UNTIL = """([name, words, then]) => new Promise((resolve, reject) => {
  const cell = document.querySelector(`.cell[data-cell="${name}"]`);
  const buttons = [...cell.querySelectorAll(".course-run-button")];
  const button = (text) => buttons.find((one) => one.textContent.includes(text));
  const look = () => {
    const status = cell.querySelector(".course-run-status")?.textContent ?? "";
    if (!status.includes(words)) return;
    watch.disconnect();
    const share = cell.querySelector("progress")?.value;
    if (then) button(then).click();
    resolve([status, share]);
  };
  const watch = new MutationObserver(look);
  watch.observe(cell, { subtree: true, childList: true, characterData: true, attributes: true });
  setTimeout(() => reject(new Error(`never said: ${words}`)), 15000);
  button("Run").click();
})"""


def run_until(page: Any, name: str, words: str, then: str = "") -> tuple[str, float]:
    """Run a cell until its row says so; then click another button. Gives what it said, and the bar's share."""
    status, share = page.evaluate(RUN_UNTIL, [name, words, then])
    return status, share


def output(page: Any, name: str) -> str:
    """What stands in the cell's output now."""
    return cell(page, name).locator(".cell_output").inner_text().strip()


def code(page: Any, name: str) -> str:
    """The cell's code as it is shown."""
    return cell(page, name).locator(".cell_input pre").inner_text().strip()


def type_into(page: Any, name: str, text: str) -> Any:
    """Replace a cell's code by typing; returns its editor."""
    if not cell(page, name).locator("textarea").count():
        button(page, name, "Edit").click()
    field = cell(page, name).locator("textarea")
    field.press("Control+A")
    page.keyboard.insert_text(text)
    return field


def kept(page: Any) -> dict[str, Any]:
    """What the browser keeps of this page's code."""
    page.evaluate("course.typed.write()")
    return page.evaluate("course.recall('code of arrays', {})")


# --- Buttons ---------------------------------------------------------------------------------------------


def test_each_code_box_that_runs_has_its_buttons_and_no_other(runner: Any):
    page = runner(PAGE)
    visible = [name for name, one in CELLS.items() if "remove-cell" not in one.get("tags", [])]
    assert page.locator(".course-run").count() == len(visible)
    for number, name in enumerate(visible, 1):
        names = [
            one.get_attribute("aria-label")
            for one in cell(page, name).locator("button.course-run-button").all()
        ]
        if name == "trains":
            assert names == [None]
            assert cell(page, name).locator(".course-run").inner_text() == ""
            button(page, name, "Jupyter only").click()
            assert cell(page, name).locator(".course-run").inner_text() == SENTENCE
        else:
            assert names[:4] == [f"{word} cell {number}" for word in ("Edit", "Run", "Stop", "Reset")]
            shown = [
                one.inner_text() for one in cell(page, name).locator("button.course-run-button:visible").all()
            ]
            # Folded with its code
            assert [one.split(" (")[0] for one in shown] == (
                [] if name == "folded" else ["Edit", "Run anyway" if name == "after" else "Run"]
            )


def test_code_boxes_stay_where_they_are_when_their_buttons_come(runner: Any, running_address: str):
    page = runner("book/index")
    page.route("**/cells/arrays.json", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.goto(f"{running_address}{PAGE}.html", wait_until="domcontentloaded")
    tops = "[...document.querySelectorAll('.cell_input pre')].map((one) => one.getBoundingClientRect().top + scrollY)"
    assert page.locator(".course-run-button").count() == 0
    page.evaluate("document.fonts.ready")
    before = page.evaluate(tops)
    page.locator(".course-run-button").first.wait_for()
    assert page.evaluate(tops) == before


def test_opening_the_editor_moves_no_letter(runner: Any):
    page = runner(PAGE)
    place = (
        "document.querySelector(\".cell[data-cell='plain'] pre span.nb\").getBoundingClientRect().toJSON()"
    )
    below = "document.querySelector(\".cell[data-cell='guess']\").getBoundingClientRect().top"
    before = page.evaluate(place), page.evaluate(below)
    button(page, "plain", "Edit").click()
    assert (page.evaluate(place), page.evaluate(below)) == before


def test_nothing_of_python_is_loaded_before_the_first_run(runner: Any, running_address: str):
    page = runner("book/index")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{running_address}{PAGE}.html")
    page.locator(".course-run-button").first.wait_for()
    assert not [url for url in asked if url.endswith(("worker.js", "site.json"))]
    run(page, "plain")
    assert [url for url in asked if url.endswith("site.json")]


def test_a_cell_that_computes_for_long_says_so_before_it_runs(runner: Any):
    page = runner(PAGE)
    main = {
        name: cell(page, name).locator(".course-run-main").first
        for name in ("long", "after", "below", "plain")
    }
    words = {name: one.inner_text() for name, one in main.items()}
    assert words == {
        "long": "Run (about 20 s)",
        "after": "Run anyway (about 35 s)",  # 15 s, and 20 s of the cell above that it needs
        "below": "Run (about 20 s)",
        "plain": "Run",
    }
    run(page, "long")
    assert main["after"].inner_text() == "Run (about 15 s)"
    assert main["below"].inner_text() == "Run"


# --- Running ---------------------------------------------------------------------------------------------


def test_a_run_says_what_it_loads_and_replaces_the_stored_output_until_it_is_asked_for(runner: Any):
    page = runner(PAGE)
    assert output(page, "plain") == "stored"
    status, share = run_until(page, "plain", "half of it")
    assert status == "half of it …"
    assert share == 0.5
    said(page, "plain", "ran here in 0.3 s")
    assert output(page, "plain") == "fresh"
    assert not cell(page, "plain").locator("progress").is_visible()
    button(page, "plain", "Stored output").click()
    assert output(page, "plain") == "stored"
    button(page, "plain", "Output of this run").click()
    assert output(page, "plain") == "fresh"
    run(page, "uses")  # the second run loads nothing
    reloaded = runner(PAGE)
    run_until(reloaded, "plain", "starting Python, about 1\u00a0s …")


def test_the_cells_that_a_cell_needs_run_first_and_once(runner: Any):
    page = runner(PAGE)
    page.evaluate("""() => {
      window.heard = [];
      const note = () => document.querySelectorAll(".course-run-status").forEach((one) => {
        if (one.textContent && heard.at(-1) !== one.textContent) heard.push(one.textContent);
      });
      new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
    }""")
    run(page, "uses")
    assert output(page, "uses") == "a is 1"
    assert any(
        "half of it; then 1 cell above that this one needs" in words for words in page.evaluate("heard")
    )
    assert any(words == "first a cell above, running …" for words in page.evaluate("heard"))
    said(page, "first", "ran here in")
    assert not page.locator(".course-needed").count()
    page.evaluate("heard = []")
    run(page, "uses")
    assert not any("first a cell" in words for words in page.evaluate("heard"))
    run(page, "relies")  # on a hidden cell
    assert output(page, "relies") == "kept is 5"


def test_an_edited_cell_that_another_needs_runs_again(runner: Any):
    page = runner(PAGE)
    run(page, "uses")
    type_into(page, "first", "a = 2")
    run(page, "uses")
    cell(page, "uses").locator(".cell_output", has_text="a is 2").wait_for()


def test_a_cell_between_runs_again_when_one_above_it_has(runner: Any):
    page = runner(PAGE)
    run(page, "last")
    type_into(page, "first", "a = 2").press("Shift+Enter")
    said(page, "first", "ran here in")
    page.evaluate("""() => {
      window.ran = [];
      const run = course.python.run;
      course.python.run = (cell, output) => { ran.push(cell.id); return run(cell, output); };
    }""")
    button(page, "last", "Run").click()
    wait_for(page, "ran.includes('last') && !course.cells.working")
    assert page.evaluate("ran") == ["between", "last"]


def test_an_error_is_text_in_the_output_and_ends_what_waits_for_it(runner: Any):
    page = runner(PAGE)
    type_into(page, "first", "1 / 0").press("Shift+Enter")
    said(page, "first", "failed here")
    assert output(page, "first") == "ZeroDivisionError: division by zero"
    button(page, "uses", "Run").click()
    said(page, "uses", "not run: a cell above, which it needs, failed")
    assert output(page, "uses") == "stored: a is 1"
    cell(page, "uses").scroll_into_view_if_needed()
    cell(page, "uses").locator(".course-run-status a").click()
    assert "course-flash" in cell(page, "first").get_attribute("class")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Code of cell 1"
    assert cell(page, "first").locator("textarea").bounding_box()["y"] > 0


def test_a_missing_name_offers_the_cells_above(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", "use(a)").press("Shift+Enter")
    said(page, "plain", "failed here")
    assert output(page, "plain") == "NameError: name 'a' is not defined"
    button(page, "plain", "Run all above first").click()
    said(page, "plain", "ran here in")
    assert output(page, "plain") == "a is 1"
    type_into(page, "plain", "use(oops)").press("Shift+Enter")  # which none of them has
    said(page, "plain", "failed here")
    assert not button(page, "plain", "Run all above first").is_visible()


def test_a_prediction_stays_hidden_until_its_own_cell_runs(runner: Any):
    page = runner(PAGE)
    hidden = cell(page, "guess").locator(".cell_output")
    page.locator(".course-python summary").click()
    assert not hidden.is_visible()
    run(page, "plain")
    assert not hidden.is_visible()
    run(page, "guess")
    assert hidden.is_visible()
    assert output(page, "guess") == "fresh answer"


def test_a_formula_is_typeset_as_in_the_page(runner: Any):
    page = runner("book/reverse_mode")
    run(page, "formula")
    cell(page, "formula").locator(".cell_output mjx-container").wait_for(timeout=10_000)


def test_scripts_listings_and_folded_code_are_as_in_the_page(runner: Any):
    page = runner(PAGE)
    run(page, "alive")
    assert output(page, "alive") == "alive"
    run(page, "listing")
    caption = cell(page, "listing").locator(".course-listing-caption")
    assert caption.inner_text() == "minigrad/x.py"
    code = cell(page, "listing").locator(".cell_output pre")
    assert code.inner_text().split() == ["def", "f(x):", "return", "x"]
    assert code.locator(".k").all_inner_texts() == ["def", "return"]
    button(page, "listing", "Stored output").click()
    assert not cell(page, "listing").locator(".course-listing").count()
    cell(page, "folded").locator("summary").click()
    run(page, "folded")
    assert output(page, "folded") == "unfolded"


def test_stop_ends_an_endless_loop_and_the_next_run_starts_afresh(runner: Any):
    page = runner(PAGE)
    run(page, "uses")
    type_into(page, "plain", "while True:\n    pass").press("Shift+Enter")
    said(page, "plain", "running")
    button(page, "guess", "Run").click()
    said(page, "guess", "waits for the cell that runs")
    button(page, "plain", "Stop").click()
    said(page, "plain", "stopped; Python starts afresh with the next run")
    said(page, "guess", "not run")
    said(page, "first", "ran here, before Python started afresh")
    assert not button(page, "plain", "Stop").is_visible()
    run(page, "uses")  # a new Python needs the first cell again
    assert output(page, "uses") == "a is 1"


def test_a_loop_in_a_needed_cell_is_told_with_its_time_and_named_when_it_is_stopped(runner: Any):
    page = runner(PAGE)
    type_into(page, "first", "while True:\n    pass")
    button(page, "uses", "Run").click()
    said(page, "uses", "first a cell above, running for 1\u00a0s")
    button(page, "uses", "Stop").click()
    said(page, "uses", "stopped; Python starts afresh with the next run")
    said(page, "first", "stopped here")


def test_stopping_while_python_loads(runner: Any):
    page = runner(PAGE)
    run_until(page, "plain", "half of it", then="Stop")
    said(page, "plain", "stopped")
    run(page, "plain")
    assert output(page, "plain") == "fresh"


def test_stopping_before_the_first_byte_came(runner: Any):
    page = runner(PAGE)
    page.route("**/site.json", lambda route: (page.wait_for_timeout(400), route.continue_()))
    button(page, "plain", "Run").click()
    said(page, "plain", "starting Python")
    button(page, "plain", "Stop").click()
    said(page, "plain", "stopped")
    assert page.evaluate("course.python.state") == "none"
    run(page, "plain")
    assert output(page, "plain") == "fresh"


def test_a_python_that_cannot_go_on_is_said_and_replaced(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", "die()").press("Shift+Enter")
    said(page, "plain", "Python cannot go on (out of memory); the next run starts it afresh")
    run(page, "uses")
    assert output(page, "uses") == "a is 1"


def test_a_worker_that_is_not_there_is_said(runner: Any):
    page = runner(PAGE)
    page.route("**/worker.js", lambda route: route.abort())
    button(page, "plain", "Run").click()
    said(page, "plain", "Python cannot go on")
    assert output(page, "plain") == "stored"


# --- Editing ---------------------------------------------------------------------------------------------


def test_the_keys_of_the_editor(runner: Any):
    page = runner(PAGE)
    field = type_into(page, "plain", "")
    page.keyboard.type("if True:")
    page.keyboard.press("Enter")
    page.keyboard.type('print("in")')
    page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    page.keyboard.type("x = 1")
    assert field.input_value() == 'if True:\n    print("in")\nx = 1'
    page.keyboard.press("Control+A")
    page.keyboard.press("Tab")
    assert field.input_value() == '    if True:\n        print("in")\n    x = 1'
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+/")
    assert field.input_value() == '# if True:\n#     print("in")\n# x = 1'
    page.keyboard.press("Control+Z")
    assert field.input_value() == 'if True:\n    print("in")\nx = 1'
    assert code(page, "plain") == field.input_value()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Edit"
    assert not cell(page, "plain").locator("textarea").count()


def test_code_is_coloured_as_pygments_does(runner: Any):
    """The author's code, typed again, gets the same colours in the same places."""
    page = runner(PAGE)
    source = 'def f(x):\n    """Text."""\n    return x[1:] + 2.5e-3  # why\n\n\nprint(None, not True, f"{x}")'
    html = page.evaluate("(source) => course.highlight(source)", source)
    for kind, text in {
        "nf": "f",
        "k": "return",
        "mi": "1",
        "mf": "2.5e-3",
        "c1": "# why",
        "nb": "print",
        "kc": "None",
        "ow": "not",
    }.items():
        assert f'<span class="{kind}">{text}</span>' in html
    plain = page.evaluate(
        "(html) => { const box = document.createElement('pre'); box.innerHTML = html; return box.textContent; }",
        html,
    )
    assert plain == source


def test_what_was_typed_survives_a_reload_and_can_be_reset(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", 'print("mine")')
    said(page, "plain", "edited, kept in this browser")
    assert list(kept(page)) == ["plain"]
    assert page.locator(".course-python summary").inner_text().startswith("Python (1)")
    type_into(page, "first", "a = 2")
    assert sorted(kept(page)) == ["first", "plain"]
    again = runner(PAGE)
    assert [code(again, name) for name in ("first", "plain")] == ["a = 2", 'print("mine")']
    assert "course-old" in cell(again, "plain").get_attribute("class")
    button(again, "first", "Reset").click()
    run(again, "plain")
    assert output(again, "plain") == "mine"
    button(again, "plain", "Reset").click()
    assert code(again, "plain") == CELLS["plain"]["source"]
    assert output(again, "plain") == "stored"
    assert "course-old" not in cell(again, "plain").get_attribute("class")
    assert kept(again) == {}
    assert not button(again, "plain", "Reset").is_visible()


def test_a_text_that_the_author_changed_since_is_said(runner: Any):
    page = runner(PAGE)
    entry = {"plain": {"source": "old()", "author": "0"}, "gone": {"source": "lost()", "author": "0"}}
    page.evaluate("(entry) => course.keep('code of arrays', entry)", entry)
    again = runner(PAGE)
    said(again, "plain", "the page’s code has changed since you typed this")
    again.locator(".course-python summary").click()
    assert "has no place on the page any more" in again.locator(".course-python-panel").inner_text()


def test_it_is_said_where_the_browser_keeps_nothing(runner: Any):
    page = runner(PAGE)
    page.evaluate(f"() => {{ Storage.prototype.setItem = {REFUSE}; }}")
    type_into(page, "plain", "x = 1")
    page.evaluate("course.typed.write()")
    page.keyboard.type("0")
    said(page, "plain", "this browser keeps nothing")


def test_two_tabs_keep_both_what_they_know(runner: Any):
    page = runner(PAGE)  # what another tab keeps is there before its event is
    page.evaluate("localStorage.setItem('minigrad-course/read', JSON.stringify(['arrays']))")
    page.evaluate("course.keep('exercises', {})")
    assert page.evaluate("course.recall('read')") == ["arrays"]
    one, two = runner(PAGE), runner("exercises/arrays", tab=True)
    one.evaluate("course.keep('read', ['reverse_mode'])")
    wait_for(two, "course.recall('read')[0] === 'reverse_mode'")
    two.evaluate("course.keep('code of exercises/arrays', {answer1: {source: 'x', author: '0'}})")
    wait_for(one, "course.recall('code of exercises/arrays')")
    for tab in (one, two):
        assert tab.evaluate("course.recall('read')") == ["reverse_mode"]
        assert tab.evaluate("course.recall('code of exercises/arrays').answer1.source") == "x"


# --- The menu --------------------------------------------------------------------------------------------


def menu(page: Any, text: str) -> None:
    """Press a button of the menu, which a click of Playwright would scroll to, although it is in sight."""
    if not page.locator(".course-python[open]").count():
        page.locator(".course-python summary").dispatch_event("click")
    chosen = page.locator(".course-python-panel button", has_text=text)
    assert chosen.is_visible()
    chosen.dispatch_event("click")


def test_run_all_above_runs_what_is_above_the_place_that_is_read(runner: Any):
    page = runner(PAGE)
    cell(page, "relies").evaluate("(one) => one.scrollIntoView({ behavior: 'instant', block: 'start' })")
    page.evaluate("scrollBy({ top: -350, behavior: 'instant' })")
    menu(page, "Run all above")
    said(page, "relies", "ran here in")
    assert output(page, "plain") == "fresh"
    assert cell(page, "alive").locator(".course-run-status").inner_text() == ""


def test_reset_page_asks_and_brings_everything_back(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", 'print("mine")').press("Shift+Enter")
    said(page, "plain", "ran here in")
    run(page, "uses")
    asked: list[str] = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    menu(page, "Reset page")
    assert asked == ["This forgets what you typed into 1 cell."]
    assert output(page, "plain") == "mine"
    page.once("dialog", lambda dialog: dialog.accept())
    menu(page, "Reset page")
    assert [output(page, name) for name in ("plain", "uses")] == ["stored", "stored: a is 1"]
    assert kept(page) == {}
    run(page, "plain")
    menu(page, "Reset page")  # nothing was typed, so it does not ask: Playwright would say no
    assert output(page, "plain") == "stored"


def test_forgetting_all_warns_of_the_code_and_takes_it_along(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", "x = 1")
    page.evaluate("course.typed.write()")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Forget it all").click()
    assert list(kept(page)) == ["plain"]
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget it all").click()
    assert code(page, "plain") == CELLS["plain"]["source"]
    assert kept(page) == {}


def test_the_download_is_a_notebook_with_edits_and_outputs(runner: Any):
    import nbformat

    page = runner(PAGE)
    entry = {"gone": {"source": "lost()", "author": "0"}}
    page.evaluate("(entry) => course.keep('code of arrays', entry)", entry)
    page.reload()
    page.locator(".course-python").wait_for(state="attached")
    type_into(page, "plain", 'print("mine")').press("Shift+Enter")
    said(page, "plain", "ran here in")
    run(page, "alive")
    type_into(page, "first", "1 / 0").press("Shift+Enter")
    said(page, "first", "failed here")
    type_into(page, "uses", "use(b)")
    with page.expect_download() as caught:
        menu(page, "Download as a notebook")
    assert caught.value.suggested_filename == "arrays.ipynb"
    notebook = nbformat.from_dict(json.loads(caught.value.path().read_text(encoding="utf-8")))
    nbformat.validate(notebook)
    cells = {one.id: one for one in notebook.cells}
    assert cells["plain"].source == 'print("mine")'
    assert [one.text for one in cells["plain"].outputs] == ["mine\n"]
    assert "alive" in cells["alive"].outputs[0].data["text/html"]
    assert cells["first"].outputs[0].ename == "ZeroDivisionError"
    assert (cells["uses"].source, cells["uses"].outputs) == ("use(b)", [])
    assert "".join(cells["guess"].outputs[0].text) == "stored answer\n"
    assert cells["gone"].source == "lost()"


# --- Where it is looked at -------------------------------------------------------------------------------


def test_a_phone_is_wide_enough(runner: Any):
    page = runner(PAGE, viewport={"width": 390, "height": 844})
    type_into(page, "wide", "wide = " + "1 + " * 60 + "1")
    button(page, "plain", "Run").click()
    said(page, "plain", "ran here in")
    page.locator(".course-python summary").click()
    box = page.locator(".course-python-panel").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_nothing_of_it_is_on_paper(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", 'print("mine")').press("Shift+Enter")
    said(page, "plain", "ran here in")
    page.emulate_media(media="print")
    for part in (".course-run", ".course-python", ".course-editor textarea", ".course-embed"):
        assert not page.locator(part).first.is_visible(), part
    assert code(page, "plain") == 'print("mine")'


def test_from_a_file_it_says_how_to_serve_the_site(running_site: Any, browser: Any):
    context = browser.new_context()
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.goto((running_site / f"{PAGE}.html").as_uri())
    assert (
        page.locator(".course-run-note").inner_text().count("python -m http.server --directory _build/html")
        == 1
    )
    assert not page.locator(".course-run, .course-run-button, .course-python").count()
    assert output(page, "plain") == "stored"
    assert errors == []
    context.close()


def test_a_build_without_the_switch_takes_out_what_one_with_it_left(running_site: Path, tmp_path: Path):
    folder = Path(shutil.copytree(running_site.parents[1], tmp_path / "book"))
    site = folder / "_build" / "html"
    assert (site / "exercises" / "arrays.html").exists()
    build(folder, folder)
    assert not (site / "exercises").exists()
    assert not (site / "_static" / "python").exists()
    text = (site / "book" / "arrays.html").read_text(encoding="utf-8")
    for part in ("data-cell", "course-cell-id", "static/python/"):
        assert part not in text
    assert "exercises/arrays.html" not in text


# --- A warm Python, and none at all ----------------------------------------------------------------------


def test_python_starts_by_itself_where_this_browser_has_it(runner: Any):
    page = runner(PAGE)
    page.clock.install()
    page.clock.fast_forward(60_000)
    page.wait_for_timeout(100)
    assert page.evaluate("course.python.state") == "none"  # who never ran a cell loads nothing
    run(page, "plain")
    wait_for(page, "course.recall('python')")
    page.reload()
    page.locator(".course-python").wait_for(state="attached")
    assert page.evaluate("course.python.state") == "none"
    page.clock.fast_forward(5_000)
    page.clock.resume()
    wait_for(page, "course.python.state === 'ready'")
    assert page.locator(".course-run-status", has_text="Python").count() == 0
    run(page, "uses")
    assert output(page, "uses") == "a is 1"


def test_a_warm_python_that_fails_says_nothing_until_a_cell_runs(runner: Any):
    page = runner(PAGE)
    run(page, "plain")
    wait_for(page, "course.recall('python')")
    page.route("**/worker.js", lambda route: route.abort())
    page.reload()
    page.locator(".course-python").wait_for(state="attached")
    page.evaluate("course.python.warm(course.page)")
    wait_for(page, "course.python.state === 'none'")
    assert page.locator(".course-run-status", has_text="Python").count() == 0
    page.unroute("**/worker.js")
    run(page, "plain")


def test_stopping_one_tab_leaves_the_names_of_the_other(runner: Any):
    one = runner(PAGE)
    run(one, "first")
    two = runner(PAGE, tab=True)
    type_into(two, "plain", "while True:\n    pass").press("Shift+Enter")
    said(two, "plain", "running")
    button(two, "plain", "Stop").click()
    said(two, "plain", "stopped")
    type_into(two, "plain", "die()").press("Shift+Enter")
    said(two, "plain", "cannot go on")
    run(one, "uses")
    assert output(one, "uses") == "a is 1"


def test_without_a_network_a_run_waits_for_it(runner: Any):
    page = runner(PAGE)
    page.context.set_offline(True)
    button(page, "uses", "Run").click()
    said(page, "uses", "you are offline, and Python is not here yet: it will start when you are back")
    page.context.set_offline(False)
    said(page, "uses", "ran here in")
    assert output(page, "uses") == "a is 1"


def test_an_old_output_is_dimmed_and_one_thing_is_said(runner: Any):
    page = runner(PAGE)
    run(page, "plain")
    assert "course-old" not in cell(page, "plain").get_attribute("class")
    type_into(page, "plain", "while True:\n    pass")
    said(page, "plain", "not run since your last change")
    assert "course-old" in cell(page, "plain").get_attribute("class")
    button(page, "plain", "Run").click()
    said(page, "plain", "running")
    button(page, "plain", "Stop").click()
    said(page, "plain", "stopped")
    status = cell(page, "plain").locator(".course-run-status").inner_text()
    assert status == "stopped; Python starts afresh with the next run"
    assert output(page, "plain") == "fresh"
    assert "course-old" in cell(page, "plain").get_attribute("class")


def test_the_second_click_of_a_double_one_does_not_stop(runner: Any):
    page = runner(PAGE)
    button(page, "plain", "Run").dblclick()
    said(page, "plain", "ran here in")


def test_a_failed_output_has_a_red_bar_and_lines_have_numbers(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", "x = 1\n1 / 0").press("Shift+Enter")
    said(page, "plain", "failed here")
    numbers = cell(page, "plain").locator(".course-line-numbers span")
    assert numbers.all_inner_texts() == ["1", "2"]
    lines = [one.bounding_box() for one in numbers.all()]
    code = cell(page, "plain").locator("textarea").bounding_box()
    assert lines[0]["y"] >= code["y"]
    assert lines[1]["y"] - lines[0]["y"] == pytest.approx(lines[0]["height"])
    colour = "(box) => getComputedStyle(box).borderLeftColor"
    bad = cell(page, "plain").locator(".cell_output").evaluate(colour)
    run(page, "uses")
    assert bad != cell(page, "uses").locator(".cell_output").evaluate(colour)
    type_into(page, "plain", "x = 1").press("Shift+Enter")
    said(page, "plain", "ran here in")
    assert "course-failed" not in cell(page, "plain").locator(".cell_output").get_attribute("class")


def test_the_buttons_are_in_the_corner_and_large_enough_for_a_thumb(runner: Any):
    for width, least in ((1280, 24), (390, 44)):
        page = runner(PAGE, viewport={"width": width, "height": 844})
        box = cell(page, "uses").locator(".cell_input").bounding_box()
        for one in (button(page, "uses", "Run"), button(page, "uses", "Edit")):
            found = one.bounding_box()
            assert min(found["width"], found["height"]) >= least
            assert found["y"] < box["y"] + 12
            assert box["x"] + box["width"] / 4 < found["x"] < box["x"] + box["width"]
        copy = cell(page, "uses").locator(".copybtn").bounding_box()
        run_box = button(page, "uses", "Run").bounding_box()
        assert run_box["x"] + run_box["width"] <= copy["x"]
        assert min(copy["width"], copy["height"]) >= least


# --- A training that is watched --------------------------------------------------------------------------


def test_a_training_shows_each_step_in_the_place_of_the_last_one(runner: Any):
    page = runner(PAGE)
    type_into(page, "plain", "train(3)").press("Shift+Enter")
    said(page, "plain", "ran here in")
    assert output(page, "plain") == "step 3"
    assert cell(page, "plain").locator(".cell_output b").count() == 1
    kept_outputs = page.evaluate(
        "course.cells.find('plain').result.outputs.map((one) => one.data['text/plain'])"
    )
    assert kept_outputs == ["step 3"]


def wait_for_step(page: Any, least: int) -> None:
    # At it or after: one step stands for some milliseconds only.
    shown = ".cell[data-cell='plain'] .cell_output b"
    passed = f"(least) => +document.querySelector(\"{shown}\")?.textContent.split(' ')[1] >= least"
    page.wait_for_function(passed, arg=least)


def test_stop_pauses_a_training_and_a_run_goes_on(runner: Any):
    page = runner(PAGE)
    run(page, "first")
    type_into(page, "plain", "train(1000)").press("Shift+Enter")
    wait_for_step(page, 2)
    button(page, "plain", "Stop").click()
    said(page, "plain", "stopped after 0.3\u00a0s; run it again, and it goes on")
    steps = int(output(page, "plain").split()[1])
    assert 2 <= steps < 1000
    run(page, "uses")  # the same Python
    assert output(page, "uses") == "a is 1"
    button(page, "plain", "Run").click()
    wait_for_step(page, steps + 2)
    button(page, "plain", "Stop").click()
    said(page, "plain", "stopped after")


def test_stop_ends_all_that_was_asked_for_beside_a_training(runner: Any):
    page = runner(PAGE)
    type_into(page, "first", "train(1000)")
    button(page, "uses", "Run").click()
    said(page, "uses", "first a cell above, running")
    button(page, "plain", "Run").click()
    said(page, "plain", "waits for the cell that runs")
    button(page, "uses", "Stop").click()
    said(page, "uses", "not run: a cell above, which it needs, was stopped")
    said(page, "plain", "not run")
    assert output(page, "plain") == "stored"


# --- What new users stumbled over ------------------------------------------------------------------------


def test_code_that_is_wider_than_its_box_scrolls_with_the_caret(runner: Any):
    for width in (1280, 390):
        page = runner(PAGE, viewport={"width": width, "height": 844})
        field = type_into(page, "plain", "x = [" + "1, " * 70)
        page.keyboard.type("last = 7")
        inside = field.evaluate("(one) => one.scrollLeft")
        box = (
            cell(page, "plain")
            .locator(".course-editor")
            .evaluate("(one) => [one.scrollLeft, one.scrollWidth - one.clientWidth]")
        )
        assert inside == 0, "the field scrolls, and the coloured code does not"
        assert box[0] == pytest.approx(box[1], abs=30)
        assert box[0] > 100
        numbers = cell(page, "plain").locator(".course-line-numbers")
        left = cell(page, "plain").locator(".cell_input").bounding_box()["x"]
        assert numbers.bounding_box()["x"] == pytest.approx(left, abs=8)


def test_a_verdict_is_dimmed_when_its_answer_has_changed(runner: Any):
    page = runner("exercises/arrays")
    type_into(page, "answer1", "def one(x):\n    return 'right'")
    button(page, "check1", "Check").click()
    cell(page, "check1").locator(".is-right").wait_for()
    assert "course-old" not in cell(page, "check1").get_attribute("class")
    type_into(page, "answer1", "def one(x):\n    return 'wrong'")
    assert "course-old" in cell(page, "check1").get_attribute("class")
