"""How fast a trained BERT reads, and how long the commands take to start, beside `transformers`.

    python book/records/benchmarks/inference.py [--rounds 7] [--record book/records/inference.json]

Both load one checkpoint, a BERT-Base with untrained weights: the work is the same. They take turns, each in a process
of its own. *reading*: a forward of 64 sentences of 128 tokens, in batches of 8, as tokens a second; before that, both
must give the same states. *fill-mask*: a whole process, from its start to the likeliest words of one text. *pretrain*:
the same from its start to the end of the first training step, with the default corpus, Python's documentation.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from machine import Others, cores, numpy_kernels, processor

assert minigrad  # imported for what it does

SENTENCES, LENGTH, BATCH = 64, 128, 8
TEXT = "word7 [MASK] word12 ."
OURS, THEIRS = "minigrad", "transformers"


# --- The checkpoint --------------------------------------------------------------------------------------


def make_checkpoint(folder: Path) -> None:
    """A BERT-Base with the heads of pre-training, its weights untrained, and a vocabulary of made-up words."""
    import torch
    from transformers import BertConfig, BertForPreTraining

    torch.manual_seed(0)
    config = BertConfig()
    BertForPreTraining(config).save_pretrained(folder)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    words = [*special, *(f"word{i}" for i in range(config.vocab_size - len(special)))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )


# --- Reading ---------------------------------------------------------------------------------------------


def reader(who: str, folder: str) -> Callable[[np.ndarray], np.ndarray]:
    """From ids (B, L) to the states of the last layer."""
    if who == OURS:
        from minigrad import backend, no_grad
        from minigrad.bert import from_pretrained

        model = from_pretrained(folder).model.bert.eval()
        backend.get("numpy").keep_freed_memory()

        def read(ids: np.ndarray) -> np.ndarray:
            with no_grad():
                return model(ids).last_hidden_state.numpy()

        return read
    import torch
    from transformers import BertModel

    theirs = BertModel.from_pretrained(folder).eval()

    def read_theirs(ids: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return theirs(torch.tensor(ids)).last_hidden_state.numpy()

    return read_theirs


def reading_child(who: str, folder: str) -> None:
    """Read all sentences for each line that comes in, and print the seconds; first, a few of the states."""
    read = reader(who, folder)
    ids = np.random.default_rng(0).integers(6, 30_000, (SENTENCES, LENGTH))
    print(json.dumps(read(ids[:BATCH])[:, 0, :4].tolist()), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for first in range(0, SENTENCES, BATCH):
            read(ids[first : first + BATCH])
        print(json.dumps(time.perf_counter() - start), flush=True)


def reading(folder: Path, rounds: int) -> dict[str, list[float]]:
    """The seconds of each forward of all sentences. Raises AssertionError if both do not compute the same."""
    seconds: dict[str, list[float]] = {OURS: [], THEIRS: []}
    with ExitStack() as stack:
        workers = {
            who: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, __file__, "--child", who, str(folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for who in seconds
        }

        def ask(who: str) -> Any:
            return json.loads(workers[who].stdout.readline())  # type: ignore[union-attr]

        np.testing.assert_allclose(*(ask(who) for who in workers), atol=1e-4)
        for _ in range(rounds + 1):
            for who, worker in workers.items():
                print(file=worker.stdin, flush=True)
                seconds[who].append(ask(who))
        for worker in workers.values():
            worker.stdin.close()  # type: ignore[union-attr]
    return {who: times[1:] for who, times in seconds.items()}  # the first warms up


# --- Starting --------------------------------------------------------------------------------------------

THEIR_FILL_MASK = """
import sys
from transformers import pipeline
for one in pipeline("fill-mask", model=sys.argv[1], device="cpu")(sys.argv[2]):
    print(one["token_str"], one["score"])
"""
TO_THE_FIRST_STEP = """
import os, sys
from minigrad.bert.__main__ import main
from minigrad.bert.pretraining import Pretraining
step = Pretraining.train_step
def first(*arguments):
    step(*arguments)
    os._exit(0)
Pretraining.train_step = first
main(["pretrain", "--output", sys.argv[1]])
sys.exit("pretrain ended before its first step")
"""


def seconds_of(*arguments: Any) -> float:
    """How long a process takes."""
    command = [sys.executable, *map(str, arguments)]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def starting(folder: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """The seconds of the processes that start, after one that warms the disk's cache."""
    ours: list[float] = []
    theirs: list[float] = []
    pretrain: list[float] = []
    for number in range(rounds + 1):
        ours.append(seconds_of("-m", "minigrad.bert", "fill-mask", "--model", folder, TEXT))
        theirs.append(seconds_of("-c", THEIR_FILL_MASK, folder, TEXT))
        pretrain.append(seconds_of("-c", TO_THE_FIRST_STEP, folder / f"run{number}"))
    return {"fill-mask": {OURS: ours[1:], THEIRS: theirs[1:]}, "pretrain": {OURS: pretrain[1:]}}


# --- The command -----------------------------------------------------------------------------------------


def spread(values: list[float]) -> dict[str, float]:
    """Median, lowest and highest."""
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def main() -> None:
    """Measure, print, and write the record if one is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        reading_child(*options.child)
        return
    import torch
    import transformers

    os.environ["TRANSFORMERS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"
    others = Others()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_checkpoint(folder)
        tokens = {
            who: spread([SENTENCES * LENGTH / one for one in times])
            for who, times in reading(folder, options.rounds).items()
        }
        seconds = {
            what: {who: spread(times) for who, times in both.items()}
            for what, both in starting(folder, options.rounds).items()
        }
    found = {
        "command": "python book/records/benchmarks/inference.py --record book/records/inference.json",
        "date": f"{datetime.now():%Y-%m-%d}",
        "processor": processor(),
        "cores": cores(),
        "kernels": numpy_kernels(),
        "versions": {
            "numpy": np.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "others_share_of_cores": others.share(),
        "rounds": options.rounds,
        "tokens_per_second": tokens,
        "seconds": seconds,
    }
    text = json.dumps(found, indent=1)
    print(text)
    if options.record:
        options.record.write_text(text + "\n")


if __name__ == "__main__":
    main()
