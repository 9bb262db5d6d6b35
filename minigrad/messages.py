"""What a message may have: values and texts from files, so that they neither flood nor command a terminal."""

from __future__ import annotations

LONGEST_LINE = 1000  # characters of an error or a note


def shown(text: str, limit: int = 200) -> str:
    """`text` as a message or a terminal may have it: what is not printable spelled out, `limit` characters at most."""
    start = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:limit]
    )
    return start if len(start) <= limit and len(text) <= limit else start[: limit - 1] + "…"


def quoted(value: object, limit: int = 200) -> str:
    """The `repr` of a value from a file, as `shown` gives it."""
    try:
        return shown(repr(value), limit)
    except (RecursionError, ValueError):  # nested too deeply; an integer of more digits than Python prints
        return "a value too large to print"
