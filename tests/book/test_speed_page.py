"""book/speed.md says what the records say, and ranks only what the records tell apart."""

from __future__ import annotations

import json
import sys

import pytest
from building import ROOT

sys.path.append(str(ROOT / "tests" / "tools"))
import speed_table

pytestmark = pytest.mark.no_arrays


def test_the_tables_are_those_of_the_records():
    """`python tests/tools/speed_table.py` mends it."""
    page = speed_table.PAGE.read_text(encoding="utf-8")
    assert page == speed_table.renewed(page)


def test_the_sentence_below_the_runs_holds():
    record = json.loads(speed_table.RUNS.read_text(encoding="utf-8"))
    assert len(record["seeds"]) == 3
    widths = {}
    for name in ("minigrad", "PyTorch again"):
        for figure in ("mlm_loss", "nsp_accuracy"):
            values = speed_table.differences(record, name, figure)
            assert min(values) < 0 < max(values)
            widths[name, figure] = max(values) - min(values)
    for figure in ("mlm_loss", "nsp_accuracy"):
        assert widths["minigrad", figure] > widths["PyTorch again", figure]


def entry(ours: tuple[int, int], plain: tuple[int, int], torch: tuple[int, int], others: float = 0.0) -> dict:
    halves = {"minigrad": ours, "minigrad, plain path": plain, "PyTorch": torch}
    case = {
        "ms": {n: sum(h) / 2 for n, h in halves.items()},
        "middle_half_ms": halves,
        "others_share_of_cores": others,
    }
    library = {"version": "2.4.6+cpu"}
    return {
        "date": "2026-01-02",
        "cores": 2,
        "processor": "X",
        "libraries": {"numpy": library},
        "cases": {"reduced": case},
    }


@pytest.mark.parametrize(
    ("halves", "said"),
    [
        (((1, 2), (3, 4), (5, 6)), "both of minigrad's ranges lie below"),
        (((1, 2), (3, 5), (5, 6)), "first range lies below all of PyTorch's and JAX's, its second does not"),
        (((1, 6), (3, 7), (5, 6)), "neither of minigrad's ranges lies below"),
        (((1, 6), (3, 4), (5, 6)), "second range lies below all of PyTorch's and JAX's, its first does not"),
    ],
)
def test_ranges_that_overlap_are_not_ranked(halves, said):
    text = speed_table.of_steps({"cpu": entry(*halves)})
    assert said in text
    assert "| `reduced`, 32 x 64 | " in text.replace("\u00a0", " ")
    assert "NumPy 2.4.6" in text
    assert "cores meanwhile" not in text


def test_a_noisy_machine_is_said():
    record = {
        "cpu": entry((1, 2), (3, 4), (5, 6)),
        "cpu, Haswell kernels": entry((1, 2), (3, 4), (5, 6), 0.21),
    }
    text = speed_table.of_steps(record)
    assert text.count("other processes used 21% of the cores meanwhile") == 1
    assert text.index("kept to its Haswell kernels, on 2026-01-02") < text.index("21%")


def test_a_page_without_a_place_is_named():
    with pytest.raises(ValueError, match="no place for a table: <!-- the steps"):
        speed_table.renewed("nothing")
