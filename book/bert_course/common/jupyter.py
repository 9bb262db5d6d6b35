"""A cell's text as plain Python: without the lines that Jupyter alone runs, such as `%timeit f(x)` and `!ls`.

The text is read letter by letter, not by Python's parser, which a hostile one can bring down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Cell magics that run the Python below them. What is below others, as %%bash, is no Python.
RUN_THEIR_CELL = {"capture", "debug", "lprun", "memit", "mprun", "prun", "time", "timeit"}
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_NAMED = r"[^=#'\"({]*=\s*"  # for what comes of a line
_LINE = re.compile(
    rf"[%!]|{_NAMED}(?:%\w|!)"  # a magic or the shell
    r"|\?{1,2}\s*[\w.*%]|[%\w.*\[\]'\"]+\s*\?{1,2}\s*(?:#.*)?$"  # help, before a name or behind it
)
# It runs the rest of its line as if it were not there
_TIMED = re.compile(rf"(\s*(?:{_NAMED})?)%time\s+(?=[^\s-])")


def plain_python(text: str) -> tuple[str, list[str]]:
    """A cell's text as Python, with as many lines, and the lines that were left out of it.

    A cell magic that does not run Python stays: the text is none.
    """
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    left_out = []
    # Cell magics, one below the other, are the first lines that are not empty
    for number, line in enumerate(lines):
        found = _CELL_MAGIC.match(line)
        if found and found[1] not in RUN_THEIR_CELL:
            return text, []
        if found:
            left_out.append(line.strip())
            lines[number] = "\n"
        elif line.strip():  # the first line of Python: how far it is indented, the cell is
            indent = line[: len(line) - len(line.lstrip())]
            lines = [line.removeprefix(indent) for line in lines]
            break
    for number in list(_first_lines(lines)):
        line = lines[number]
        if _TIMED.match(line):
            lines[number] = _TIMED.sub(r"\1", line, count=1)
        elif _LINE.match(line.strip()):
            left_out.append(line.strip())
            lines[number] = line[: len(line) - len(line.lstrip())] + "pass\n"
            while _goes_on(line) and number + 1 < len(lines):
                number, line = number + 1, lines[number + 1]
                lines[number] = "\n"
    return "".join(lines), left_out


def _goes_on(line: str) -> bool:
    return line.rstrip("\r\n").endswith("\\")


def _first_lines(lines: list[str]) -> Iterator[int]:
    """The numbers of the lines on which a statement begins: not within a text, brackets, or behind a backslash."""
    depth, quotes, goes_on = 0, "", False
    for number, line in enumerate(lines):
        begins = not (depth or quotes or goes_on)
        goes_on = _goes_on(line)
        if begins:
            yield number
            if _LINE.match(line.strip()) and not _TIMED.match(line):
                continue  # quotes and brackets mean nothing there
        place = 0
        while place < len(line):
            letter = line[place]
            if quotes:
                if letter == "\\":
                    place += 1
                elif line.startswith(quotes, place):
                    place, quotes = place + len(quotes) - 1, ""
            elif letter == "#":
                break
            elif letter in "'\"":
                quotes = letter * 3 if line.startswith(letter * 3, place) else letter
                place += len(quotes) - 1
            elif letter in "([{":
                depth += 1
            elif letter in ")]}":
                depth = max(0, depth - 1)
            place += 1
        if len(quotes) == 1 and not goes_on:  # such a text ends with its line, as Python will say
            quotes = ""
