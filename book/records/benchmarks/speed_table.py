"""Writes the tables of book/speed.md again, from the records of `pretraining_step.py`, on the CPU and on a GPU,
`inference.py` and `pretraining_run.py`.

    python book/records/benchmarks/speed_table.py

Who is faster than whom is said here too, by bold ratios: only where the middle halves of the rounds do not overlap, in
each of the measurements.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "book" / "speed.md"
STEPS = ROOT / "book" / "records" / "pretraining_step.json"
GPU = ROOT / "book" / "records" / "pretraining_step_gpu.json"
READING = ROOT / "book" / "records" / "inference.json"
RUNS = ROOT / "book" / "records" / "pretraining_run.json"
STEPS_BEGIN = "<!-- the steps, by book/records/benchmarks/speed_table.py -->\n"
GPU_BEGIN = "<!-- on a GPU, by book/records/benchmarks/speed_table.py -->\n"
READING_BEGIN = "<!-- reading and starting, by book/records/benchmarks/speed_table.py -->\n"
RUNS_BEGIN = "<!-- the runs, by book/records/benchmarks/speed_table.py -->\n"
END = "<!-- until here -->\n"

CASES = {
    "reduced": "`reduced`, 32 x 64",
    "small": "4 layers, hidden 256, 16 x 128",
    "base": "BERT-Base, 4 x 128",
}
GPU_CASES = {
    "reduced": "`reduced`, 32 x 64",
    "base-32x128": "BERT-Base, 32 x 128",
    "base-8x512": "BERT-Base, 8 x 512",
}
CONTESTANTS = {
    "minigrad": "minigrad",
    "minigrad, plain path": "all of the last layer",
    "PyTorch": "PyTorch",
    "PyTorch, compiled": "compiled",
    "products": "products alone",
}
GPU_CONTESTANTS = {"minigrad, plain path": "minigrad, all of the last layer", "products": "products alone"}
OURS, LIKE_FOR_LIKE = "minigrad", "minigrad, plain path"
OTHERS = ("PyTorch", "PyTorch, compiled")
QUIET = 0.05  # share of the cores that other processes may use
SETTINGS = {  # by what the keys of the record have beside the device
    "": "on {cores} cores",
    ", one core": "on one core",
    ", Haswell kernels": "on {cores} cores, with OpenBLAS kept to its Haswell kernels",
}

Measured = list[dict[str, Any]]  # the measurements of one entry of the record


def of_steps(record: dict[str, Measured]) -> str:
    """The timings in text. Raises KeyError for a record without the CPU's own kernels."""
    first = record["cpu"][0]
    versions = {"numpy": "NumPy", "torch": "PyTorch"}
    libraries = " and ".join(
        f"{name} {first['libraries'][key]['version'].partition('+')[0]}"
        for key, name in versions.items()
        if key in first["libraries"]
    )
    parts = [
        f"Measured with {libraries} on an {first['processor']}. A cell with milliseconds is the median of the "
        "measurements, each itself a median of rounds."
    ]
    for suffix, where in SETTINGS.items():
        if measured := record.get(f"cpu{suffix}"):
            dates = ", ".join(one["date"] for one in measured)
            where = where.format(cores=measured[0]["cores"])
            parts += [f"{where[0].upper()}{where[1:]} ({dates}):", _table(measured), *_remarks(measured)]
    return "\n\n".join(parts) + "\n"


def _table(measured: Measured) -> str:
    titles = [*CONTESTANTS.values(), "minigrad / faster PyTorch", "all of the last layer / faster PyTorch"]
    lines = ["| milliseconds | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for case, title in CASES.items():
        figures = [one["cases"][case] for one in measured if case in one["cases"]]
        if figures:
            cells = [_milliseconds(figures, name) for name in CONTESTANTS]
            cells += [_ratio(figures, name) for name in (OURS, LIKE_FOR_LIKE)]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _milliseconds(figures: Measured, name: str) -> str:
    found = [one["ms"][name] for one in figures if name in one["ms"]]
    return f"{statistics.median(found):,.0f}" if found else ""


def _ratio(figures: Measured, name: str) -> str:
    """The median over the measurements, the lowest and the highest; in bold where it is faster in each."""
    found = [to_faster_pytorch(one, name) for one in figures]
    text = f"{statistics.median(found):.2f}"
    if len(found) > 1:
        text += f" ({min(found):.2f}\u00a0to\u00a0{max(found):.2f})"  # the range stays on one line
    return f"**{text}**" if all(clearly_faster(one, name) for one in figures) else text


def to_faster_pytorch(figures: dict[str, Any], name: str) -> float:
    """The time over that of the faster of PyTorch and compiled PyTorch in the same measurement."""
    return figures["ms"][name] / min(figures["ms"][other] for other in OTHERS if other in figures["ms"])


def clearly_faster(figures: dict[str, Any], name: str) -> bool:
    """Whether the middle half of the rounds lies below all of the others'."""
    halves = figures["middle_half_ms"]
    return halves[name][1] < min(halves[other][0] for other in OTHERS if other in halves)


def _remarks(measured: Measured) -> list[str]:
    """What went on beside the measurements."""
    shares = [
        (title, one["date"], one["cases"][case]["others_share_of_cores"] or 0.0)
        for one in measured
        for case, title in CASES.items()
        if case in one["cases"]
    ]
    noisy = [
        f"- {title}, {when}: other processes used {share:.0%} of the cores meanwhile."
        for title, when, share in shares
        if share > QUIET
    ]
    return ["\n".join(noisy)] if noisy else []


def of_gpu(record: dict[str, Measured]) -> str:
    """The timings on a GPU, in text. Raises KeyError for a record without them."""
    one = record["cuda"][-1]
    cases = {title: one["cases"][case] for case, title in GPU_CASES.items() if case in one["cases"]}
    names = next(iter(cases.values()))["ms"]
    rounds = min(figures["rounds"] for figures in cases.values())
    torch = one["libraries"]["torch"]["version"].partition("+")[0]
    lines = [
        f"Measured on {one['date']} on an {one['gpu']}, with PyTorch {torch} and products in TF32: medians of "
        f"{rounds} rounds.",
        "",
        "| milliseconds | " + " | ".join(cases) + " |",
        "|---" * (len(cases) + 1) + "|",
        *(
            f"| {GPU_CONTESTANTS.get(name, name)} | "
            + " | ".join(f"{figures['ms'][name]:.1f}" for figures in cases.values())
            + " |"
            for name in names
        ),
        "",
        "minigrad's step of `reduced` by the number of texts: "
        + ", ".join(f"{row['batch']}: {row['ms']:.0f} ms" for row in one["scaling"])
        + ".",
    ]
    return "\n".join(lines) + "\n"


def of_reading(record: dict[str, Any]) -> str:
    """How fast a model reads and the commands start, as a table."""
    rows = {
        "tokens a second, BERT-Base reads 64 sentences of 128 tokens": record["tokens_per_second"],
        "seconds, `fill-mask` with BERT-Base, from the start of the process to its end": record["seconds"][
            "fill-mask"
        ],
        "seconds, `pretrain`, from the start of the process to the end of the first step": record["seconds"][
            "pretrain"
        ],
    }
    lines = [
        f"Measured on {record['date']} on {record['cores']} cores of an {record['processor']}: the median of "
        f"{record['rounds']} rounds, with the lowest and the highest.",
        "",
        "| | minigrad | transformers |",
        "|---|---|---|",
    ]
    for title, figures in rows.items():
        digits = 0 if title.startswith("tokens") else 1
        cells = [
            "{:,.{d}f} ({:,.{d}f}\u00a0to\u00a0{:,.{d}f})".format(*figures[who].values(), d=digits)
            if who in figures
            else ""
            for who in ("minigrad", "transformers")
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


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
    parts = (
        (STEPS_BEGIN, STEPS, of_steps),
        (GPU_BEGIN, GPU, of_gpu),
        (READING_BEGIN, READING, of_reading),
        (RUNS_BEGIN, RUNS, of_runs),
    )
    for begin, record, text in parts:
        before, found, rest = page.partition(begin)
        _, end, after = rest.partition(END)
        if not (found and end):
            raise ValueError(f"the page has no place for a table: {begin.strip()} … {END.strip()}")
        block = text(json.loads(record.read_text(encoding="utf-8")))
        page = f"{before}{begin}\n{block}\n{END}{after}"
    return page


def main() -> None:
    """Write all tables into the page, each between its two marks."""
    try:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    except ValueError as error:
        sys.exit(f"speed_table.py: {error}")


if __name__ == "__main__":
    main()
