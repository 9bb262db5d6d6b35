"""book/speed.md says what the records say, and ranks only what the records tell apart."""

from __future__ import annotations

import json

import pytest

from book.records.benchmarks import speed_table

pytestmark = pytest.mark.no_arrays


def test_the_tables_are_those_of_the_records():
    """`python book/records/benchmarks/speed_table.py` mends it."""
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
        "date": "2026-01-02 10:00",
        "cores": 2,
        "processor": "X",
        "libraries": {"numpy": library},
        "cases": {"reduced": case},
    }


FAST, SLOW = ((2, 4), (3, 5), (6, 10)), ((2, 6), (4, 8), (6, 10))


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ([FAST], "| **0.38** | **0.50** |"),
        ([SLOW], "| 0.50 | 0.75 |"),
        ([FAST, FAST, SLOW], "| 0.38 (0.38 to 0.50) | 0.50 (0.50 to 0.75) |"),
        ([FAST, FAST, FAST], "| **0.38 (0.38 to 0.38)** | **0.50 (0.50 to 0.50)** |"),
    ],
)
def test_only_what_is_faster_each_time_is_in_bold(measured, said):
    """Faster: the middle halves of the rounds do not overlap."""
    text = speed_table.of_steps({"cpu": [entry(*halves) for halves in measured]}).replace("\u00a0", " ")
    assert text.count("| `reduced`, 32 x 64 | ") == 1
    assert f"| 8 |  |  {said}" in text
    assert "NumPy 2.4.6" in text
    assert "cores meanwhile" not in text


def test_each_setting_has_its_table_and_a_noisy_machine_is_said():
    record = {
        "cpu": [entry(*FAST)],
        "cpu, one core": [entry(*FAST)],
        "cpu, Haswell kernels": [entry(*FAST), entry(*FAST, 0.21)],
    }
    text = speed_table.of_steps(record)
    assert text.count("other processes used 21% of the cores meanwhile") == 1
    where = [
        "On 2 cores (",
        "On one core (",
        "On 2 cores, with OpenBLAS kept to its Haswell kernels (",
        "21%",
    ]
    assert sorted(where, key=text.index) == where


def test_a_page_without_a_place_is_named():
    with pytest.raises(ValueError, match="no place for a table: <!-- the steps"):
        speed_table.renewed("nothing")
