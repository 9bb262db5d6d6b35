""" "Beat it": stories with a hidden word, which the reader guesses before the model and the best possible guess do.

A guess gets as many points as it has probability, which the grammar knows exactly: so luck counts for nothing, nobody
gets more than the best possible guess, and whoever reads better than the model beats it. static/beat.js plays it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np

from bert_course.common.palette import STYLE
from minigrad.stories.floors import Scorer
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import draw_pairs
from minigrad.text.wordpiece import MASK

ROUNDS, SETS = 10, 6
CHOICES = 4
SEED = 2**20 + 36  # those of the training are below 2**20
# probability of the best guess: where careful reading tells, and where nobody can know
SETTLED, OPEN = (0.9, (0.3, 0.7))
SMALL = 1e-3  # of a word that is not worth a button


@dataclass(frozen=True)
class Round:
    """A story of two halves with one gap.

    halves: its words, with [MASK]. answer: what stood there. choices: words for the buttons, in alphabetical order.
    exact: the probability of each of them, given all other words.
    """

    halves: tuple[str, str]
    answer: str
    choices: list[str]
    exact: dict[str, float]


@cache
def games() -> list[list[Round]]:
    """`SETS` times `ROUNDS` rounds, the same each time; half of each are settled by the rest of the story."""
    settled: list[Round] = []
    unsettled: list[Round] = []
    for round_, best in _candidates():
        if best >= SETTLED and len(settled) < SETS * ROUNDS // 2:
            settled.append(round_)
        elif OPEN[0] <= best <= OPEN[1] and len(unsettled) < SETS * ROUNDS // 2:
            unsettled.append(round_)
        if len(settled) == len(unsettled) == SETS * ROUNDS // 2:
            break
    half, rng = ROUNDS // 2, np.random.default_rng(SEED)
    found = []
    for number in range(SETS):
        of_both = settled[number * half :][:half] + unsettled[number * half :][:half]
        found.append([of_both[place] for place in rng.permutation(ROUNDS)])
    return found


def _candidates() -> Iterator[tuple[Round, float]]:
    """One round of each story, with the probability of the best guess; its slot is drawn."""
    scorer, setting = Scorer(SETTINGS["light"]), SETTINGS["light"]
    rng = np.random.default_rng(SEED)
    others: dict[str, set[str]] = {}  # words of each slot
    for pair in draw_pairs(setting, 40 * SETS * ROUNDS, seed=SEED):
        for word in pair.words:
            others.setdefault(word.slot, set()).add(word.text)
        places = [n for n, word in enumerate(pair.words) if word.slot not in ("glue", "preposition", "place")]
        place = int(rng.choice(places))
        word = pair.words[place]
        exact = scorer.hidden_word(pair.text_a, pair.text_b, place)
        likely = [one for one in sorted(exact, key=lambda one: (-exact[one], one)) if exact[one] > SMALL]
        choices = likely[:CHOICES]
        if word.text not in choices:
            continue
        rest = sorted(others[word.slot] - set(choices))
        choices += [str(one) for one in rng.permutation(rest)[: CHOICES - len(choices)]]
        if len(choices) == CHOICES:
            words = [MASK if n == place else one.text for n, one in enumerate(pair.words)]
            cut = sum(map(len, pair.a))
            halves = " ".join(words[:cut]), " ".join(words[cut:])
            shown = {one: round(exact.get(one, 0.0), 4) for one in sorted(choices)}
            yield Round(halves, word.text, sorted(choices), shown), exact[likely[0]]


def page(script: str) -> str:
    """The game in HTML. script: the address of the script with the model of stories."""
    rounds = [[asdict(one) for one in game] for game in games()]
    parts = {"PALETTE": STYLE, "GAMES": html.escape(json.dumps(rounds)), "SCRIPT": html.escape(script)}
    filled = _PAGE
    for name, text in parts.items():
        filled = filled.replace(f"@{name}@", text)
    return filled


_PAGE = """<div class="course-beat course-colours" data-games="@GAMES@" data-script="@SCRIPT@">@PALETTE@
<noscript><p>Without JavaScript the game cannot be played.</p></noscript>
<p class="rules">Guess the hidden word of a story. Then the model guesses, and then whoever knows the grammar. A guess
gets as many points as it has probability, given all other words, so luck counts for nothing. In half of the stories
careful reading tells the word. In the others nobody can know it, but some words are likelier than others.</p>
<p class="story" hidden></p>
<div class="choices" role="group" aria-label="Your guess"></div>
<ol class="said" hidden></ol>
<p class="score" role="status"></p>
<div class="row"><button type="button" class="course-button go" hidden>Play ten rounds</button></div>
</div>
"""
