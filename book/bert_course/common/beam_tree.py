"""A tree of texts, and what a beam finds in it: chapter `decoding` and its exercise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Tree = Mapping[str, Mapping[str, float]]  # from a text to the words that may follow, with their probabilities


def kept(tree: Tree, width: int) -> list[list[tuple[str, float]]]:
    """What a beam holds after each word of a tree whose texts are all of one length: texts and probabilities."""
    live, found = [("", 1.0)], []
    while live[0][0] in tree:
        longer = [
            (f"{text} {word}".strip(), p * step) for text, p in live for word, step in tree[text].items()
        ]
        live = sorted(longer, key=lambda one: -one[1])[:width]
        found.append(live)
    return found


def widths_that_find_it(tree: Tree, widths: Sequence[int]) -> list[bool]:
    """Whether a beam of each width finds the most probable text of a tree whose texts all have one length.

    Raises ValueError for a tree without a beginning "", for words whose probabilities are negative or do not sum to
    1, for texts of several lengths, and if two texts are the most probable.
    """
    if "" not in tree:
        raise ValueError('a tree has its first words under "", and this one has nothing there')
    probabilities, texts, depths = {"": 1.0}, {}, set()
    waiting = [""]
    while waiting:
        text = waiting.pop()
        if text not in tree:
            texts[text] = probabilities[text]
            depths.add(len(text.split()))
            continue
        total = sum(tree[text].values())
        if abs(total - 1) > 1e-6 or min(tree[text].values()) < 0:
            raise ValueError(
                f"the probabilities of the words after {text!r} should sum to 1, got {total:.3f}"
            )
        for word, step in tree[text].items():
            longer = f"{text} {word}".strip()
            probabilities[longer] = probabilities[text] * step
            waiting.append(longer)
    if len(depths) > 1:
        raise ValueError(f"all texts should have as many words, got lengths {sorted(depths)}")
    best = max(texts.values())
    if sum(p > best * (1 - 1e-9) for p in texts.values()) > 1:
        raise ValueError("two texts are the most probable: make one of them the best")
    return [kept(tree, width)[-1][0][1] > best * (1 - 1e-9) for width in widths]
