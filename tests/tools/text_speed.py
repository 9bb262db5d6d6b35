"""How fast text becomes pairs of sentences, and that no kind of text makes it grow faster than the text.

    python tests/tools/text_speed.py [--kinds prose …] [--sizes 0.1 0.5 2.5 10 50] [--limit 100]
        [--record FILE.json]

Each kind of text is made from a seed, written as a folder of two files, and goes the way of `pretrain`: read and cut
into sentences, learn a vocabulary, encode, pair. A part that takes a time in proportion to the text has the same MB/s
in each row of a kind, apart from what it costs to begin; at ten times the size, a part that grows with the square has
a tenth of it. Each size is a process of its own with a time limit; where one is over it, the larger ones are left out.
Words of random characters are slow to learn from at any size: no word comes twice, and each merge meets hundreds of
them a MB.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import machine
import numpy as np

from minigrad.bert.data import PretrainingData, encode_documents
from minigrad.text.corpus import CorpusError, read_corpus
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import train_wordpiece

VOCAB_SIZE = 4000
PARTS = ("read", "learn", "encode", "pair")
SIZES = (0.1, 0.5, 2.5, 10, 50)  # millions of characters

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BASE64 = LETTERS.upper() + LETTERS + "0123456789+/"
HANGUL = [chr(code) for code in range(0xAC00, 0xAC00 + 400)]


# --- Kinds of text ---------------------------------------------------------------------------------------


def unbroken(alphabet: str, length: int, rng: np.random.Generator) -> str:
    """One word of random characters."""
    codes = np.array([ord(character) for character in alphabet], np.uint8)
    return codes[rng.integers(0, len(codes), length)].tobytes().decode()


def sentences(alphabet: str | list[str], longest_word: int, length: int, rng: np.random.Generator) -> str:
    """Sentences of about a dozen made-up words, the n-th word of which is about 1/n as frequent as the first."""
    words = ["".join(rng.choice(list(alphabet), rng.integers(1, longest_word + 1))) for _ in range(50_000)]
    text, size = [], 0
    while size < length:
        # the n-th word has a share of 1/n in all that are drawn
        drawn = np.exp(rng.random(100_000) * np.log(len(words))).astype(int)
        ends = rng.random(len(drawn)) < 1 / 12
        begins = True
        for number, end in zip(drawn.tolist(), ends.tolist(), strict=True):
            word = words[number]
            text.append((word.capitalize() if begins else word) + ("." if end else ""))
            size += len(text[-1]) + 1
            begins = end
    return " ".join(text)[:length]


def words_of_99(length: int, rng: np.random.Generator) -> str:
    """Random words as long as the tokenizer takes them."""
    text = unbroken(BASE64[:62], length, rng)
    return " ".join(text[i : i + 99] for i in range(0, length, 100))


KINDS: dict[str, Callable[[int, np.random.Generator], str]] = {
    "prose": lambda length, rng: sentences(LETTERS, 10, length, rng),
    "prose without capitals": lambda length, rng: sentences(LETTERS, 10, length, rng).lower(),
    "Korean": lambda length, rng: sentences(HANGUL, 4, length, rng),
    "row of full stops": lambda length, rng: "." * length,
    "a. a. a.": lambda length, rng: ("a. " * (length // 3 + 1))[:length],
    "hexadecimal, unbroken": lambda length, rng: unbroken("0123456789abcdef", length, rng),
    "base64, unbroken": lambda length, rng: unbroken(BASE64, length, rng),
    "words of 99": words_of_99,
}


# --- One measurement, in a process of its own ------------------------------------------------------------


def peak_mb() -> float | None:
    """The most memory that this process had so far; None where Linux does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def measure_folder(folder: str) -> dict[str, Any]:
    """Seconds of each part, None where it is not possible, the memory at its end, and what was found."""
    seconds: dict[str, float | None] = {}
    memory = {"before": peak_mb()}

    def timed(part: str, function: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = function()
        seconds[part] = time.perf_counter() - start
        memory[part] = peak_mb()
        return result

    corpus = timed("read", lambda: read_corpus(folder))
    vocabulary = timed("learn", lambda: train_wordpiece(corpus.sentences, VOCAB_SIZE))
    tokenizer = WordPieceTokenizer(vocabulary)
    documents = timed("encode", lambda: encode_documents(corpus.documents, tokenizer))
    try:
        timed("pair", lambda: PretrainingData(documents, tokenizer, 32, 64, 0))
    except CorpusError:  # one [UNK] in each file is not enough for a pair
        seconds["pair"] = None
    return {
        "seconds": seconds,
        "memory_mb": memory,
        "sentences": sum(map(len, corpus.documents)),
        "pieces": len(vocabulary),
        "tokens": sum(len(sentence) for document in documents for sentence in document),
    }


# --- All of them -----------------------------------------------------------------------------------------


def measure(kind: str, size: float, limit: float) -> dict[str, Any] | None:
    """What `measure_folder` finds in a process of its own; None if it takes longer than `limit` seconds."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.txt", "b.txt"):
            Path(folder, name).write_text(KINDS[kind](int(size * 1e6) // 2, rng), encoding="utf-8")
        command = [sys.executable, __file__, "--folder", folder]
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
    return json.loads(result.stdout)


def cell(size: float, seconds: float | None) -> str:
    """Seconds and MB/s."""
    return f"{'-':>17}" if seconds is None else f"{seconds:7.2f} s {size / max(seconds, 1e-6):5.1f}/s"


def rounded(value: Any) -> Any:
    """All floats in nested dicts to four digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> None:
    """Measure, print the table, write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--sizes", nargs="+", type=float, default=SIZES, help="in millions of characters")
    parser.add_argument("--limit", type=float, default=100, help="seconds for one size of one kind")
    parser.add_argument("--record", type=Path, help="the JSON file to write")
    parser.add_argument("--folder", help="measure the text in this folder alone, and print JSON")
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(measure_folder(options.folder)))
        return
    others = machine.Others()
    cases: dict[str, dict[str, Any]] = {}
    print(f"{'million characters':24}" + "".join(f"{part:>19}" for part in PARTS) + "    memory")
    for kind in options.kinds:
        print(kind)
        cases[kind] = {}
        for size in sorted(options.sizes):
            found = measure(kind, size, options.limit)
            cases[kind][f"{size:g}"] = found
            if found is None:
                print(f"{size:>24g}  over {options.limit:g} s; larger ones are left out", flush=True)
                break
            cells = "  ".join(cell(size, found["seconds"][part]) for part in PARTS)
            memory = found["memory_mb"]
            print(
                f"{size:>24g}  {cells}  {max(memory.values()) if memory['read'] else 0:5.0f} MB", flush=True
            )
    if options.record:
        record = {
            "date": date.today().isoformat(),
            "processor": machine.processor(),
            "cores": machine.cores(),
            "others_share_of_cores": others.share(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "vocab_size": VOCAB_SIZE,
            "limit_s": options.limit,
            "million_characters": cases,
        }
        options.record.write_text(json.dumps(rounded(record), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
