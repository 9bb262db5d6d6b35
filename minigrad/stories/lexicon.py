"""The words of the grammar's stories, and how stories are told: short and plain, varied, or long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Kind:
    """Things of one kind: only they take its verbs and its adjectives. All kinds have equally many of each."""

    nouns: tuple[str, ...]  # singular; the plural has an s
    verbs: tuple[str, ...]
    adjectives: tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """The words of the open classes. A small one makes all stories few enough to be counted."""

    men: tuple[str, ...]
    women: tuple[str, ...]
    places: tuple[str, ...]
    kinds: Mapping[str, Kind]
    counts: Mapping[str, int]  # weights: "one", and counts above it
    keeps: tuple[str, ...]  # the holder ... it; may be none, as may all that follow but one
    gives: tuple[str, ...]  # the holder ... to the other, who has it then
    shows: tuple[str, ...]  # the holder ... to the other, and keeps it
    takes: tuple[str, ...]  # the other ... from the holder
    hides: tuple[str, ...]  # the holder ... from the other, and keeps it
    ages: tuple[str, ...] = ("big", "new", "old", "small")  # adjectives that all things take
    moods: tuple[str, ...] = ("angry", "calm", "happy", "tired")
    times: tuple[str, ...] = ("again", "now", "today")
    manners: tuple[str, ...] = ("gladly", "often", "quietly", "slowly")

    def __post_init__(self) -> None:
        """The priors hang on these: half of the names are men's, half of the counts are `one`, all kinds are alike."""
        sizes = {(len(kind.nouns), len(kind.verbs), len(kind.adjectives)) for kind in self.kinds.values()}
        if len(self.men) != len(self.women) or len(sizes) != 1:
            raise ValueError(
                f"a lexicon needs as many men as women, got {len(self.men)} and {len(self.women)}, and as many nouns, "
                f"verbs and adjectives in each kind, got {sorted(sizes)}"
            )
        if 2 * self.counts.get("one", 0) != sum(self.counts.values()):
            raise ValueError(f"half of the weight of the counts must be on 'one', got {dict(self.counts)}")

    def kind_of(self, noun: str) -> str:
        """The kind of a noun."""
        return next(name for name, kind in self.kinds.items() if noun in kind.nouns)


FULL = Lexicon(
    men=("adam", "bill", "david", "frank", "john", "mark", "paul", "tom"),
    women=("anna", "clara", "ellen", "jane", "kate", "mary", "rose", "susan"),
    places=("attic", "barn", "cellar", "garden", "kitchen", "library", "park", "shop"),
    kinds={
        "text": Kind(("book", "letter", "map", "poem"), ("copies", "reads"), ("ancient", "famous", "secret")),
        "food": Kind(("cake", "carrot", "pear", "plum"), ("eats", "tastes"), ("fresh", "ripe", "sweet")),
        "cloth": Kind(("coat", "glove", "hat", "shirt"), ("folds", "wears"), ("torn", "warm", "woollen")),
        "animal": Kind(("cat", "dog", "goat", "hen"), ("feeds", "strokes"), ("hungry", "tame", "wild")),
        "tool": Kind(("drill", "hammer", "saw", "spade"), ("oils", "repairs"), ("blunt", "heavy", "rusty")),
        "music": Kind(("drum", "flute", "horn", "violin"), ("plays", "tunes"), ("hollow", "loud", "shrill")),
    },
    counts={"one": 4, "two": 1, "three": 1, "four": 1, "five": 1},
    keeps=("keeps",),
    gives=("gives", "sends"),
    shows=("describes", "shows"),
    takes=("borrows", "takes"),
    hides=("hides",),
)

SUBJECT = {True: "he", False: "she"}
OBJECT = {True: "him", False: "her"}
POSSESSIVE = {True: "his", False: "her"}


# Who has the thing is the last person in the sentence of the event.
PLAIN = replace(FULL, keeps=("hides", "keeps"), shows=(), takes=(), hides=())


@dataclass(frozen=True)
class Setting:
    """How stories are told: `light`, `varied`, `long`. Chances are out of ten."""

    name: str
    sentences: tuple[int, ...]  # how many, each as likely
    scene: bool = True  # whether a story opens with where the two are
    adverbs: int = 0  # before the subject, before the verb, at the end: each
    ages: int = 0  # an adjective before a noun
    relatives: int = 0  # who is tired, which mary likes
    lexicon: Lexicon = FULL

    def words(self) -> list[str]:
        """Every word of a story, or of a question about it, each once, in alphabetical order."""
        of = self.lexicon
        found = set(". and are has in is it of the them to with".split())  # noqa: SIM905
        found.update("? how many where who".split())  # noqa: SIM905  (of questions about stories)
        found.update(SUBJECT.values(), OBJECT.values(), POSSESSIVE.values(), of.men, of.women, of.places)
        found.update(of.counts, of.keeps, of.gives, of.shows, of.takes, of.hides)
        for kind in of.kinds.values():
            found.update(kind.nouns, [noun + "s" for noun in kind.nouns], kind.verbs, kind.adjectives)
        if of.takes or of.hides:
            found.add("from")
        if self.adverbs:
            found.update(of.times, of.manners)
        if self.ages:
            found.update(of.ages)
        if self.relatives:
            found.update(of.moods, ["which", "likes"])
        return sorted(found)


SETTINGS = {
    setting.name: setting
    for setting in [
        Setting("light", sentences=(4,), lexicon=PLAIN),
        Setting("varied", sentences=(4,), adverbs=3, ages=4, relatives=4),
        Setting("long", sentences=(1, 2, 3, 4, 5, 6, 7), scene=False, adverbs=2, ages=2),
    ]
}
