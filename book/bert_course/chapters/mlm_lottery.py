"""A lottery for `mlm`: the words of a text are chosen and hidden again and again, in Python and in the browser."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

from bert_course.common.palette import STYLE, colour

FATES = ("[MASK]", "random", "kept")
OF_FATE = {"[MASK]": "first", "random": "second", "kept": "value"}  # their colours


class Rolls:
    """Random numbers in [0, 1) that JavaScript draws too: mulberry32, on whole numbers of 32 bits."""

    def __init__(self, seed: int) -> None:
        self.state = seed & 0xFFFFFFFF

    def next(self) -> float:
        """The next number."""
        self.state = (self.state + 1831565813) & 0xFFFFFFFF
        t = ((self.state ^ (self.state >> 15)) * (self.state | 1)) & 0xFFFFFFFF
        t ^= (t + ((t ^ (t >> 7)) * (t | 61) & 0xFFFFFFFF)) & 0xFFFFFFFF
        return (t ^ (t >> 14)) / 2**32


class Lottery:
    """A text to hide words of with a button, again and again, with counts, to be the last line of a cell.

    The first draw is the still picture. tokens: with [CLS] and [SEP], which are never chosen. pieces: what a random one
    is drawn from. Raises ValueError if there is no token to choose, or no piece.
    """

    def __init__(self, tokens: Sequence[str], pieces: Sequence[str], seed: int = 1) -> None:
        self.tokens, self.pieces, self.seed = list(tokens), list(pieces), seed
        self.free = [i for i, token in enumerate(self.tokens) if token not in ("[CLS]", "[SEP]", "[PAD]")]
        if not self.free or not self.pieces:
            raise ValueError("a lottery needs a token that may be chosen, and a piece to put in its place")
        self.many = max(1, int(0.15 * len(self.tokens) + 0.5))

    def draw(self, rolls: Rolls) -> dict[int, tuple[str, str]]:
        """The chosen places, each with what becomes of it and what the model then reads."""
        places, found = list(self.free), {}
        for k in range(min(self.many, len(places))):
            j = k + int(rolls.next() * (len(places) - k))
            places[k], places[j] = places[j], places[k]
            u = rolls.next()
            if u < 0.8:
                found[places[k]] = ("[MASK]", "[MASK]")
            elif u < 0.9:
                found[places[k]] = ("random", self.pieces[int(rolls.next() * len(self.pieces))])
            else:
                found[places[k]] = ("kept", self.tokens[places[k]])
        return found

    def counts(self, draws: int) -> dict[str, int]:
        """How often each fate comes in so many draws, from the first on."""
        rolls, found = Rolls(self.seed), dict.fromkeys(FATES, 0)
        for _ in range(draws):
            for fate, _ in self.draw(rolls).values():
                found[fate] += 1
        return found

    def _chips(self, drawn: dict[int, tuple[str, str]]) -> str:
        chips = ""
        for i, token in enumerate(self.tokens):
            fate, reads = drawn.get(i, ("", token))
            times = f"{int(i in drawn)}" if i in self.free else "never"
            chips += (
                f'<span class="chip" data-fate="{fate}"><span class="was">{html.escape(token)}</span>'
                f'<span class="reads">{html.escape(reads)}</span><span class="fate">{fate}</span>'
                f'<span class="times">{times}</span></span>'
            )
        return chips

    def _repr_html_(self) -> str:
        state = {
            "tokens": self.tokens,
            "pieces": self.pieces,
            "free": self.free,
            "many": self.many,
            "seed": self.seed,
        }
        drawn = self.draw(Rolls(self.seed))
        rows = "".join(
            f'<tr data-row="{fate}"><th scope="row">{fate}</th><td>{sum(f == fate for f, _ in drawn.values())}</td>'
            f"<td></td><td>{expected}</td></tr>"
            for fate, expected in zip(FATES, ("80 %", "10 %", "10 %"), strict=True)
        )
        script = _LOTTERY_SCRIPT.replace("STATE", json.dumps(state).replace("<", "\\u003c"))
        return (
            f'<div class="course-lottery course-colours">{STYLE}<style>{_LOTTERY_STYLE}</style>'
            '<div class="controls" hidden><button type="button" data-draws="1">draw</button>'
            '<button type="button" data-draws="100">draw 100 times</button>'
            '<button type="button" data-draws="0">start again</button></div>'
            f'<div class="chips">{self._chips(drawn)}</div>'
            '<p aria-live="polite">For each token: the word, what the model reads, what was done to it if it was '
            "chosen, and how often it was chosen so far.</p>"
            '<table><thead><tr><th scope="col">chosen tokens</th><th scope="col">so far</th>'
            f'<th scope="col">share</th><th scope="col">expected</th></tr></thead><tbody>{rows}</tbody></table>'
            f"<script>{script}</script></div>"
        )

    def __repr__(self) -> str:
        drawn = self.draw(Rolls(self.seed))
        reads = " ".join(drawn.get(i, ("", token))[1] for i, token in enumerate(self.tokens))
        told = ", ".join(f"{self.tokens[i]}: {fate}" for i, (fate, _) in sorted(drawn.items()))
        counts = self.counts(1000)
        sums = ", ".join(f"{fate} {count}" for fate, count in counts.items())
        return (
            f"{' '.join(self.tokens)}\nFirst draw: {reads}\nChosen: {told}\n"
            f"After 1,000 draws: {sums}, of {sum(counts.values())} chosen"
        )


_LOTTERY_STYLE = f"""
.course-lottery {{max-width: 40rem; margin: 0.6rem 0}}
.course-lottery .controls {{display: flex; flex-wrap: wrap; gap: 0.4rem; margin-bottom: 0.6rem}}
.course-lottery .controls[hidden] {{display: none}}
.course-lottery button {{font: inherit; font-size: 0.9rem; color: inherit; background: transparent;
  padding: 0.3rem 0.7rem; border: 1px solid rgba(128, 128, 128, 0.8); border-radius: 4px; cursor: pointer}}
.course-lottery button:focus-visible {{outline: 2px solid {colour("second")}; outline-offset: 1px}}
.course-lottery .chips {{display: flex; flex-wrap: wrap; gap: 0.3rem}}
.course-lottery .chip {{display: grid; grid-template-rows: repeat(4, 1.4em); justify-items: center; min-width: 2.6em;
  padding: 0.15rem 0.35rem; border: 1px solid rgba(128, 128, 128, 0.4); border-radius: 4px; font-size: 0.85rem}}
.course-lottery .was {{opacity: 0.75}}
.course-lottery .reads {{font-weight: bold}}
.course-lottery .fate {{font-size: 0.75rem}}
.course-lottery .times {{font-size: 0.75rem; font-variant-numeric: tabular-nums}}
{
    "".join(
        f'.course-lottery .chip[data-fate="{fate}"] {{border: 2px solid {colour(name)}}}'
        f'.course-lottery .chip[data-fate="{fate}"] :is(.reads, .fate) {{color: {colour(name)}}}'
        for fate, name in OF_FATE.items()
    )
}
.course-lottery p {{margin: 0.5rem 0; font-size: 0.9rem}}
.course-lottery table {{border-collapse: collapse; margin: 0; width: auto; font-size: 0.85rem;
  font-variant-numeric: tabular-nums}}
.course-lottery :is(th, td) {{padding: 0.15rem 0.6rem; border: 0; background: none; font-weight: normal;
  text-align: right}}
.course-lottery th[scope="row"] {{text-align: left}}
@media print {{.course-lottery .controls {{display: none}}}}
"""

_LOTTERY_SCRIPT = """
(function () {
  var root = document.currentScript.parentElement, given = STATE;
  var chips = Array.from(root.querySelectorAll(".chip")), state, counts, chosen;
  function roll() {
    state = (state + 1831565813) >>> 0;
    var t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }
  function draw() {
    var places = given.free.slice(), found = {};
    for (var k = 0; k < Math.min(given.many, places.length); k++) {
      var j = k + Math.floor(roll() * (places.length - k)), kept = places[k];
      places[k] = places[j];
      places[j] = kept;
      var u = roll(), at = places[k];
      found[at] = u < 0.8 ? ["[MASK]", "[MASK]"] : u >= 0.9 ? ["kept", given.tokens[at]]
        : ["random", given.pieces[Math.floor(roll() * given.pieces.length)]];
      counts[found[at][0]] += 1;
      chosen[at] += 1;
    }
    return found;
  }
  function put(chip, name, text) { chip.querySelector("." + name).textContent = text; }
  function show(found) {
    chips.forEach(function (chip, i) {
      var one = found[i] || ["", given.tokens[i]];
      chip.dataset.fate = one[0];
      put(chip, "reads", one[1]);
      put(chip, "fate", one[0]);
      if (given.free.includes(i)) put(chip, "times", String(chosen[i]));
    });
    var all = counts["[MASK]"] + counts.random + counts.kept;
    root.querySelectorAll("[data-row]").forEach(function (row) {
      var n = counts[row.dataset.row];
      row.cells[1].textContent = n.toLocaleString("en");
      row.cells[2].textContent = (100 * n / all).toFixed(1) + " %";
    });
    var said = Object.keys(found).map(i => given.tokens[i] + ": " + found[i][0]).join(", ");
    root.querySelector("p").textContent = "Chosen in this draw: " + said + ". Below each token: how often it was " +
      "chosen so far.";
  }
  function start() {
    state = given.seed;
    counts = {"[MASK]": 0, random: 0, kept: 0};
    chosen = given.tokens.map(() => 0);
    show(draw());
  }
  root.querySelector(".controls").addEventListener("click", function (e) {
    if (!e.target.dataset.draws) return;
    var many = +e.target.dataset.draws, found;
    if (!many) return start();
    for (var n = 0; n < many; n++) found = draw();
    show(found);
  });
  root.querySelector(".controls").hidden = false;
  start();
})();
"""

mask_lottery = Lottery  # in a page
