"""Writes the tables of book/speed.md again, from the records of `pretraining_step.py` and `pretraining_run.py`.

    python tests/tools/speed_table.py

What the timings say in words, who is faster than whom, is made here too: two are ranked only where the middle halves
of their rounds do not overlap.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "speed.md"
STEPS, RUNS = (
    ROOT / "book" / "runs" / "pretraining_step.json",
    ROOT / "tests" / "tools" / "pretraining_run.json",
)
STEPS_BEGIN = "<!-- the steps, by tests/tools/speed_table.py -->\n"
RUNS_BEGIN = "<!-- the runs, by tests/tools/speed_table.py -->\n"
END = "<!-- until here -->\n"

CASES = {
    "reduced": "`reduced`, 32 x 64",
    "small": "4 layers, hidden 256, 16 x 128",
    "base": "BERT-Base, 4 x 128",
}
CONTESTANTS = {
    "minigrad": "minigrad",
    "minigrad, plain path": "all of the last layer",
    "PyTorch": "PyTorch",
    "PyTorch, compiled": "compiled",
    "JAX": "JAX `jit`",
    "products": "products alone",
}
OURS = ("minigrad", "minigrad, plain path")
OTHERS = ("PyTorch", "PyTorch, compiled", "JAX")
QUIET = 0.05  # share of the cores that other processes may use


def of_steps(record: dict[str, Any]) -> str:
    """The timings in text. Raises KeyError for a record without the CPU's own kernels."""
    entry = record["cpu"]
    versions = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
    libraries = ", ".join(
        f"{name} {entry['libraries'][key]['version'].partition('+')[0]}"
        for key, name in versions.items()
        if key in entry["libraries"]
    )
    parts = [
        f"Measured on {entry['date']} on {entry['cores']} cores of an {entry['processor']}, with {libraries}. Each "
        "cell is the median in milliseconds, with the middle half of the rounds.",
        _table(entry),
        _verdicts(entry),
    ]
    for name, other in record.items():
        if name.startswith("cpu, "):
            kernels = name.removeprefix("cpu, ")
            parts += [
                f"The same with OpenBLAS kept to its {kernels}, on {other['date']}:",
                _table(other),
                _verdicts(other),
            ]
    return "\n\n".join(parts) + "\n"


def _table(entry: dict[str, Any]) -> str:
    lines = [
        "| milliseconds | " + " | ".join(CONTESTANTS.values()) + " |",
        "|---" * (len(CONTESTANTS) + 1) + "|",
    ]
    for case, title in CASES.items():
        if case in entry["cases"]:
            cells = [_cell(entry["cases"][case], name) for name in CONTESTANTS]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(figures: dict[str, Any], name: str) -> str:
    if name not in figures["ms"]:
        return ""
    low, high = figures["middle_half_ms"][name]
    return f"{figures['ms'][name]:,.0f} ({low:,.0f}\u00a0to\u00a0{high:,.0f})"  # the range stays on one line


def _verdicts(entry: dict[str, Any]) -> str:
    """Sentences on who is faster, and on what went on beside the measurement."""
    cases = {title: entry["cases"][case] for case, title in CASES.items() if case in entry["cases"]}
    said = {title: SAID[tuple(clearly_faster(figures))] for title, figures in cases.items()}
    if len(set(said.values())) == 1:
        lines = [f"In each row, {next(iter(said.values()))}."]
    else:
        lines = [f"- {title}: {text}." for title, text in said.items()]
    for title, figures in cases.items():
        noise = figures["others_share_of_cores"] or 0.0
        if noise > QUIET:
            lines.append(f"- {title}: other processes used {noise:.0%} of the cores meanwhile.")
    return "\n".join(lines)


SAID = {
    (True, True): "both of minigrad's ranges lie below all of PyTorch's and JAX's",
    (True, False): "minigrad's first range lies below all of PyTorch's and JAX's, its second does not",
    (False, False): "neither of minigrad's ranges lies below all of PyTorch's and JAX's",
    (False, True): "minigrad's second range lies below all of PyTorch's and JAX's, its first does not",
}


def clearly_faster(figures: dict[str, Any]) -> list[bool]:
    """Of each of OURS, whether its middle half lies below all of the others'."""
    halves = figures["middle_half_ms"]
    lowest = min(halves[name][0] for name in OTHERS if name in halves)
    return [halves[name][1] < lowest for name in OURS]


def of_runs(record: dict[str, Any]) -> str:
    """How far whole runs end from PyTorch's, as a table."""
    rows = {"minigrad": "minigrad", "PyTorch again": "PyTorch, one rounding apart,"}
    lines = [
        "| held out, mean (lowest to highest) | masked-word loss (nats) | next-sentence accuracy (points) |",
        "|---|---|---|",
    ]
    for name, title in rows.items():
        cells = []
        for figure, unit, digits in (("mlm_loss", 1, 3), ("nsp_accuracy", 100, 1)):
            values = differences(record, name, figure)
            shown = [f"{unit * v:+.{digits}f}" for v in (statistics.mean(values), min(values), max(values))]
            cells.append(f"{shown[0]} ({shown[1]} to {shown[2]})")
        lines.append(f"| {title} minus PyTorch | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def differences(record: dict[str, Any], name: str, figure: str) -> list[float]:
    """A figure of `name`'s run minus that of PyTorch's, for each seed."""
    return [seed["means"][name][figure] - seed["means"]["PyTorch"][figure] for seed in record["seeds"]]


def renewed(page: str) -> str:
    """The page's text with what the records say now. Raises ValueError where the page has no place for it."""
    for begin, record, text in ((STEPS_BEGIN, STEPS, of_steps), (RUNS_BEGIN, RUNS, of_runs)):
        before, found, rest = page.partition(begin)
        _, end, after = rest.partition(END)
        if not (found and end):
            raise ValueError(f"the page has no place for a table: {begin.strip()} … {END.strip()}")
        block = text(json.loads(record.read_text(encoding="utf-8")))
        page = f"{before}{begin}\n{block}\n{END}{after}"
    return page


def main() -> None:
    """Write both tables into the page, each between its two marks."""
    try:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    except ValueError as error:
        sys.exit(f"speed_table.py: {error}")


if __name__ == "__main__":
    main()
