"""A training that is watched: plainly, in Jupyter's kernel, and in slices in the page's."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest

from bert_course.common import live_curve
from bert_course.common.live_curve import LiveCurve
from book.site.python.packages.page_kernel import Kernel

pytestmark = pytest.mark.no_arrays

SOURCE = """
from bert_course.common.live_curve import LiveCurve
curve = LiveCurve((5.0 - n / 10 for n in range(30)), floor=2.0)
curve.run(4)
"""


def test_it_trains_as_many_steps_as_it_is_told_and_goes_on():
    curve = LiveCurve(iter([3.0, 2.0, 1.0]), floor=0.5)
    assert repr(curve) == "step 0"
    curve.run(2)
    assert curve.losses == [3.0, 2.0]
    assert repr(curve) == "step 2: 2.50, best possible 0.50"
    curve.run(1)
    assert repr(curve) == "step 3: 2.00, best possible 0.50"
    curve.run(5)  # there are no more
    assert curve.losses == [3.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        curve.run(0)


def test_the_thick_line_is_the_mean_of_the_last_ten():
    rng = np.random.default_rng(0)
    curve = LiveCurve(iter(rng.random(25)))
    curve.run(25)
    expected = [np.mean(curve.losses[max(0, n - 10) : n]) for n in range(1, 26)]
    np.testing.assert_allclose(curve.means(), expected)


def test_a_stop_in_jupyter_cuts_no_step_in_two_and_goes_on(capsys):
    def steps():
        for loss in (1.0, 0.9, 0.8, 0.7):
            if loss == 0.9:
                signal.raise_signal(signal.SIGINT)
            yield loss

    curve = LiveCurve(steps())
    curve.run(10)
    assert curve.losses == [1.0, 0.9]
    assert capsys.readouterr().out == "stopped after step 2; run the cell again, and it goes on\n"
    curve.run(1)
    assert curve.losses == [1.0, 0.9, 0.8]


def test_an_error_of_a_step_is_told():
    with pytest.raises(ZeroDivisionError):
        LiveCurve(1 / n for n in (1, 0)).run(3)


def test_a_page_does_it_in_slices():
    sent = []
    kernel = Kernel(sent.append, slices=True)
    assert kernel.run(SOURCE)
    assert kernel.has_more
    curve = kernel.names["curve"]
    assert curve.losses == []
    assert kernel.go_on(0)  # one slice: the first step
    assert len(curve.losses) == 1
    assert kernel.has_more
    assert kernel.go_on(10)
    assert not kernel.has_more
    assert len(curve.losses) == 4
    first, *later, last = sent
    assert first["output_type"] == last["output_type"] == "display_data"
    assert {one["output_type"] for one in later} == {"update_display_data"}
    assert {one["transient"]["display_id"] for one in later} == {first["transient"]["display_id"]}
    assert first["data"] == later[-1]["data"] == {"text/plain": "", "text/html": ""}
    assert last["data"]["text/plain"] == "step 4: 4.85, best possible 2.00"
    assert "<svg" in last["data"]["text/html"]


def test_it_is_drawn_while_it_trains(monkeypatch):
    monkeypatch.setattr(live_curve, "EVERY", -1.0)
    sent = []
    kernel = Kernel(sent.append, slices=True)
    kernel.run(SOURCE)
    kernel.go_on(0)
    assert [one["data"]["text/plain"] for one in sent] == ["", "step 1: 5.00, best possible 2.00"]


def test_whoever_asks_for_no_slices_gets_all_of_it_at_once():
    sent = []
    kernel = Kernel(sent.append)
    assert kernel.run(SOURCE)
    assert not kernel.has_more
    assert len(kernel.names["curve"].losses) == 4
    assert [one["output_type"] for one in sent] == ["display_data", "display_data"]
    assert sent[-1]["data"]["text/plain"].startswith("step 4: ")


def test_a_page_that_stops_it_goes_on_with_the_next_run():
    sent = []
    kernel = Kernel(sent.append, slices=True)
    kernel.run(SOURCE)
    kernel.go_on(0)
    kernel.drop()
    assert not kernel.has_more
    assert sent[-1]["data"]["text/plain"].startswith("step 1: ")
    kernel.run("curve.run(2)")
    kernel.go_on(10)
    assert sent[-1]["data"]["text/plain"].startswith("step 3: ")


def test_another_cell_ends_what_was_left():
    kernel = Kernel([].append, slices=True)
    kernel.run(SOURCE)
    kernel.go_on(0)
    kernel.run("1 + 1")
    assert not kernel.has_more
    assert len(kernel.names["curve"].losses) == 1


def test_an_error_in_a_slice_is_an_output_and_ends_it():
    sent = []
    kernel = Kernel(sent.append, slices=True)
    kernel.run(SOURCE.replace("n / 10", "1 / (2 - n)"))
    assert not kernel.go_on(10)
    assert not kernel.has_more
    assert sent[-1]["output_type"] == "error"
    assert sent[-1]["ename"] == "ZeroDivisionError"


def test_it_needs_no_ipython(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    curve = LiveCurve(iter([1.0, 1.0]))
    curve.run(2)
    assert curve.losses == [1.0, 1.0]
