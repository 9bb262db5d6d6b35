"""The worker of the pages in a browser: it loads Python from the site alone, runs cells, and says what they put out.

Needs a site that `make site` has built; `make site-check` runs this, elsewhere it is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from building import SITE

from browsers import wait_for

pytestmark = pytest.mark.no_arrays

# In the page: a worker, what it has said, and a promise that ends with one of these types.
PAGE = """
<script type="module">
  window.worker = new Worker("/_static/python/worker.js", {type: "module"});
  window.said = [];
  window.told = [];
  worker.onerror = (error) => window.said.push({type: "broken", text: error.message});
  worker.onmessage = ({data}) => { window.said.push(data); window.told.forEach((look) => look()); };
  window.ask = (message, ...ends) => new Promise((resolve) => {
    const from = window.said.length;
    const look = () => {
      if (window.said.slice(from).some(({type}) => ends.includes(type))) resolve(window.said.slice(from));
    };
    window.told.push(look);
    worker.postMessage(message);
  });
</script>
"""


NEXT_WORKER = """() => new Promise((resolve) => {
  const other = new Worker("/_static/python/worker.js", { type: "module" });
  other.onmessage = ({ data }) => {
    if (!["ready", "broken"].includes(data.type)) return;
    other.terminate();
    resolve(data);
  };
  other.postMessage({ type: "load", page: "one_head" });
})"""


@pytest.fixture(scope="module")
def page(browser: Any, site_address: str) -> Iterator[Any]:
    """A page whose worker has loaded Python, with the addresses that it asked for."""
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.requests = []
    page.on("request", lambda request: page.requests.append(request.url))
    page.route("**/test.html", lambda route: route.fulfill(content_type="text/html", body=PAGE))
    page.goto(f"{site_address}test.html")
    page.loading = ask(page, {"type": "load", "page": "one_head"}, "ready", "broken")
    yield page
    page.close()


def ask(page: Any, message: dict[str, Any], *ends: str) -> list[dict[str, Any]]:
    """What the worker says to a message, until one of these types."""
    return page.evaluate(f"ask({json.dumps(message)}, ...{json.dumps(ends)})")


def run(
    page: Any, source: str, random: list[int] | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The outputs of a cell, and the worker's last word."""
    message = {"type": "run", "cell": "x", "source": source, "random": random, "tag": 7}
    *said, last = ask(page, message, "done", "broken")
    assert all(one["type"] == "output" and one["tag"] == 7 for one in said)
    return [one["output"] for one in said], last


def test_it_gets_ready_and_says_how_far_it_is(page):
    *progress, ready = page.loading
    assert ready["type"] == "ready", ready
    assert ready["seconds"] > 0
    shares = [one["share"] for one in progress]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1
    assert progress[0]["text"].startswith("fetching Python, ")


def test_the_next_worker_starts_from_the_image_of_the_first(page):
    assert page.loading[-1]["fromImage"] is False
    wait_for(page, "(async () => (await (await caches.open('course-python')).keys()).length === 1)()")
    second = page.evaluate(NEXT_WORKER)
    assert second["type"] == "ready", second
    assert second["fromImage"] is True


def test_a_damaged_image_whose_sum_is_right_is_not_used(page):
    """Nobody hears of it: the first word after what is told while Python loads is that it is ready."""
    wait_for(page, "(async () => (await (await caches.open('course-python')).keys()).length === 1)()")
    page.evaluate("""async () => {
      const cache = await caches.open("course-python");
      [window.imageName] = await cache.keys();
      window.kept = new Uint8Array(await (await cache.match(imageName)).arrayBuffer());
    }""")
    for damaged in ("new Uint8Array(0)", "kept.subarray(0, 2e6)"):
        page.evaluate(f"""async () => {{
          const image = {damaged};
          const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", image));
          const headers = {{ "X-Sum": btoa(String.fromCharCode(...digest)) }};
          await (await caches.open("course-python")).put(imageName, new Response(image, {{ headers }}));
        }}""")
        second = page.evaluate(NEXT_WORKER)
        assert second["type"] == "ready", (damaged, second)
        assert second["fromImage"] is False, damaged


def test_no_request_leaves_the_site(page, site_address):
    assert page.requests
    assert all(url.startswith((site_address, "blob:")) for url in page.requests), page.requests


def test_what_comes_over_the_wire_is_what_the_site_says(page, site_address):
    files = [url for url in page.requests if url.endswith(".gz")]
    manifest = json.loads((SITE / "_static" / "python" / "site.json").read_text())
    first = [one["path"] for one in (*manifest["core"].values(), *manifest["archives"].values())]
    assert {url.partition("/_static/python/")[2] for url in files} >= set(first)
    assert (
        sum((SITE / "_static" / "python" / one).stat().st_size for one in first) == manifest["bytes"] < 15e6
    )


def test_a_cell_runs(page):
    outputs, last = run(page, "from minigrad import Tensor\nprint('one')\n(Tensor([1.0, 2.0]) * 2).sum()")
    assert outputs[0] == {"output_type": "stream", "name": "stdout", "text": "one\n"}
    assert "6." in outputs[1]["data"]["text/plain"]
    assert last["type"] == "done"
    assert last["failed"] is False


def test_an_error_is_told_and_python_goes_on(page):
    (output,), last = run(page, "x = 1\nx / 0")
    assert output["ename"] == "ZeroDivisionError"
    assert output["traceback"] == ["line 2", "    x / 0", "ZeroDivisionError: division by zero"]
    assert last["failed"] is True
    assert run(page, "x")[0][0]["data"]["text/plain"] == "1"


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __repr__(self): raise SystemExit\nA()",
        "class A:\n    def __repr__(self): return repr(self)\nA()",  # the stack of the browser ends early
        "class A:\n    def __repr__(self): return f'A({[self]})'\nA()",
        "class A:\n    def _repr_html_(self): return {1}\nA()",
        "class A:\n    def _repr_html_(self): return '', {'a': float('nan')}\nA()",
        "class E(Exception):\n    def __str__(self): return f'{self}'\nraise E",
        "class A:\n    def __add__(self, other): return self + other\nA() + 1",
        "a = []\nfor _ in range(20_000):\n    a = [a]\na",
    ],
)
def test_no_error_ends_python(page, source):
    run(page, "kept = 5")
    outputs, last = run(page, source)
    assert outputs[-1]["output_type"] == "error"
    assert (last["type"], last["failed"]) == ("done", True)
    assert run(page, "kept")[0][0]["data"]["text/plain"] == "5"


def test_draws_start_where_they_would(page):
    draw = "from minigrad import random\nfloat(random.generator().random())"
    first, _ = run(page, draw, [3, 5])
    other, _ = run(page, draw, [3, 6])
    again, _ = run(page, draw, [3, 5])
    assert first == again != other


def test_a_stored_model_comes_when_it_is_asked_for(page):
    assert not any("/tiny." in url for url in page.requests)
    outputs, _ = run(
        page, "from bert_course.stored import stored\nsorted(p.name for p in stored('tiny').iterdir())"
    )
    assert "model.safetensors" in outputs[0]["data"]["text/plain"]
    assert any("/tiny." in url for url in page.requests)


def test_a_large_array_takes_no_operand_for_its_result(page):
    """NumPy asks for `backtrace` from 256 KiB on, which is not there."""
    outputs, _ = run(
        page, "import numpy as np\na = np.ones(200_000)\nfloat(((a + 1) / 4).sum()), float(a.sum())"
    )
    assert outputs[0]["data"]["text/plain"] == "(100000.0, 200000.0)"


def test_forget_leaves_nothing(page):
    run(page, "left = 1")
    page.evaluate("worker.postMessage({type: 'forget'})")
    (output,), _ = run(page, "left")
    assert output["ename"] == "NameError"
