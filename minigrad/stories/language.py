"""Sovian, a made-up language, and the stories of the grammar in it, with the word that each of its words translates.

    mary  has two old books .                    he     borrows them from her .
    mary ga partin stavil dwen ko jorem .        tum ga tem fe lin ko naftum .
    mary    books  old    two     has            he     her from them borrows

The language is named after the order of its sentences: subject, object, verb (`translate` says the whole
rule). Each phrase ends in a mark that shows what the phrase is to the verb. Articles have no counterpart. A
noun ends in the vowel of its class, a, e, i or o, and an n follows for two or three things, an s for four or
more. A word that refers to the thing ends like its noun: the words for *it*, *which* and *is*. A word that
refers to a man ends in um, of a woman in em: the words for *he* and *who*, and every verb.

So a word can depend on others far away. The ending of *them* depends on the noun, perhaps sentences away, and
nothing nearer shows it, because each kind of thing has a noun of each class. Every plural depends on the
count, which a story gives once, at its beginning. (Serbo-Croatian nouns, too, have one form after two, three
and four, and another from five on.)

Marks are words of their own, not endings, so that the vocabulary stays small and a mark has an alignment of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from minigrad.stories.grammar import PEOPLE, PLACE, THING, Clause, Phrase, Story, Word
from minigrad.stories.lexicon import FULL, Setting

# --- Words -----------------------------------------------------------------------------------------------

NOUNS = {
    "book": "parti", "letter": "sulda", "map": "grino", "poem": "verme",
    "cake": "boldo", "carrot": "kirne", "pear": "mulfa", "plum": "desti",
    "coat": "hamba", "glove": "ronti", "hat": "pelke", "shirt": "sivo",
    "cat": "miske", "dog": "vufo", "goat": "brani", "hen": "tokla",
    "drill": "zurbi", "hammer": "klamo", "saw": "fente", "spade": "dorga",
    "drum": "gombe", "flute": "lirna", "horn": "hurvo", "violin": "skeni",
}  # fmt: skip

# Without their endings.
VERBS = {
    "has": "jor", "likes": "mil", "keeps": "tosk", "gives": "dal", "sends": "rul", "describes": "vokt", "shows": "mir",
    "borrows": "naft", "takes": "kep", "hides": "sund", "copies": "palk", "reads": "lesh", "eats": "nof",
    "tastes": "gub", "folds": "plin", "wears": "vort", "feeds": "bosk", "strokes": "hilf", "oils": "zand",
    "repairs": "rik", "plays": "trul", "tunes": "fesh",
}  # fmt: skip

# Words that never change.
FIXED = {
    ".": ".", "and": "ul",
    "attic": "toru", "barn": "galdu", "cellar": "nimbu", "garden": "wersu",
    "kitchen": "kobu", "library": "lestu", "park": "vindu", "shop": "mertu",
    "one": "osk", "two": "dwen", "three": "trosh", "four": "kwer", "five": "penk",
    "big": "gromil", "new": "nuvil", "old": "stavil", "small": "pikil",
    "angry": "drakil", "calm": "suvil", "happy": "jolpil", "tired": "mokil",
    "ancient": "orvil", "famous": "klenil", "secret": "wespil",
    "fresh": "nelfil", "ripe": "rumbil", "sweet": "lomil",
    "torn": "skarnil", "warm": "tefil", "woollen": "wulmil",
    "hungry": "bargil", "tame": "lendil", "wild": "farkil",
    "blunt": "dumpil", "heavy": "pondil", "rusty": "grastil",
    "hollow": "koffil", "loud": "brunil", "shrill": "zitril",
    "again": "ritay", "now": "nunay", "today": "dosay",
    "gladly": "goltay", "often": "sevay", "quietly": "mutay", "slowly": "lampay",
}  # fmt: skip

# What ends a phrase. The first two translate no word: English says them by its order.
MARKS = {"subject": "ga", "object": "ko", "to": "du", "from": "fe", "in": "lu", "of": "zi", "with": "po"}

CLASSES = "aeio"
NUMBERS = ONE, FEW, MANY = "", "n", "s"  # behind the vowel
FEW_COUNTS = ("two", "three")
MAN, WOMAN = "um", "em"
IT, WHICH, BE = "l", "kr", "vr"  # without their endings
HE, WHO = "t", "gr"  # he, him, his: tum; she, her: tem
ARE_TOGETHER = BE + "un"  # john and mary are


def english_words(setting: Setting) -> list[str]:
    """Every word of the setting's stories, without those of questions about them, in alphabetical order."""
    never = {"?", "how", "many", "where"}
    if not setting.relatives:
        never.add("who")
    if not setting.scene:
        never.update(("and", "in", "with"), setting.lexicon.places)
    return [word for word in setting.words() if word not in never]


def sovian_words(setting: Setting) -> list[str]:
    """Every word of their translations but the names and the full stop, in alphabetical order."""
    said = set(english_words(setting))
    found = {word for english, word in FIXED.items() if english in said and english != "."}
    found |= {mark for role, mark in MARKS.items() if role in {*said, "subject", "object"}}
    people = [HE] + [stem for verb, stem in VERBS.items() if verb in said]
    if setting.scene:
        found.add(ARE_TOGETHER)
    if setting.relatives:
        people.append(WHO)
    if setting.scene or setting.relatives:  # john is in the attic, mary who is tired
        people.append(BE)
    things = [IT, BE, WHICH] if setting.relatives else [IT, BE]
    in_class = [stem + vowel for stem in things for vowel in CLASSES]
    in_class += [sovian for noun, sovian in NOUNS.items() if noun in said]
    found |= {stem + ending for stem in people for ending in (MAN, WOMAN)}
    found |= {word + number for word in in_class for number in NUMBERS}
    return sorted(found)


# --- A translation ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SovianWord:
    """A word of a translation. Places count the words of the whole story from 0.

    aligned: the place of the word that it translates; none for the marks of subject and object. The mark of a
    possessor translates `of`, or the word `her`, which says both. needs: what decides its ending besides the word that
    it translates, each as the places where it is said, of which one is enough: for `them` every mention of the noun,
    and the count.
    """

    text: str
    aligned: tuple[int, ...] = ()
    needs: tuple[tuple[int, ...], ...] = ()

    @property
    def reach(self) -> int:
        """How many words lie from the one that it translates to the farthest that it needs; 0 if it needs none."""
        return max((min(abs(place - self.aligned[0]) for place in need) for need in self.needs), default=0)


@dataclass(frozen=True)
class Translation:
    """A story's sentences in Sovian."""

    sentences: tuple[tuple[SovianWord, ...], ...]

    @property
    def words(self) -> list[SovianWord]:
        """The words of all sentences."""
        return [word for sentence in self.sentences for word in sentence]

    def texts(self) -> list[str]:
        """The sentences, words separated by spaces."""
        return [" ".join(word.text for word in sentence) for sentence in self.sentences]


def translate(story: Story) -> Translation:
    """The story in Sovian: a function of its text alone.

    The order of a sentence: when; the subject; what English says after the verb, last first; how; the verb. That of a
    phrase: its possessor; the noun; what English says before the noun, last first (books old two); its relative
    clause; the mark. A relative clause begins with its *who* or *which*, without a mark, and ends in its verb.

    Raises ValueError for the end of a story whose beginning would determine how a word ends: what `it` is, or
    how many.
    """
    words = [word for sentence in story.sentences for word in sentence]
    sentences: list[tuple[SovianWord, ...]] = []
    start = 0
    for sentence, tree in zip(story.sentences, story.trees, strict=True):
        sentences.append(tuple(_Sentence(story, words, start).whole(tree)))
        start += len(sentence)
    return Translation(tuple(sentences))


class _Sentence:
    """One sentence on its way; its first word is at the place `start` of the story."""

    def __init__(self, story: Story, words: list[Word], start: int) -> None:
        self.story, self.words, self.start = story, words, start

    def whole(self, clause: Clause) -> list[SovianWord]:
        """The sentence: when, the clause, the full stop."""
        when = [mark for mark in clause.marks if self.word(mark).text in FULL.times]
        stop = [mark for mark in clause.marks if self.word(mark).tag == "STOP"]
        return [*map(self.fixed, when), *self.clause(clause), *map(self.fixed, stop)]

    def clause(self, clause: Clause, about: Phrase | None = None) -> list[SovianWord]:
        """A clause without its stop; `about`: the phrase that it is a relative clause of."""
        phrases = [("subject", clause.subject), *reversed(clause.others)]
        if clause.object is not None:
            phrases.append(("object", clause.object))
        phrases.sort(key=lambda item: item[1].form != "relative")  # the sort is stable
        found = []
        for role, phrase in phrases:
            if phrase.form == "relative":
                assert about is not None
                found.append(self.relative_word(phrase, about))
            else:
                found += self.phrase(phrase, role)
        how = [m for m in clause.marks if self.word(m).tag == "ADV" and self.word(m).text not in FULL.times]
        what = [mark for mark in clause.marks if self.word(mark).tag == "ADJ"]
        return [*found, *map(self.fixed, (*what, *how)), self.verb(clause, about)]

    def phrase(self, phrase: Phrase, role: str | None) -> list[SovianWord]:
        """A phrase, with the mark of its role if it has one."""
        found = [] if phrase.possessor is None else self.phrase(phrase.possessor, "of")
        found.append(self.head(phrase))
        found += [self.fixed(m) for m in reversed(phrase.marks) if self.word(m).tag in ("ADJ", "NUM")]
        if phrase.relative is not None:
            found += self.clause(phrase.relative, about=phrase)
        if phrase.also is not None:
            found += [self.fixed(phrase.also.marks[0]), *self.phrase(phrase.also, None)]
        if role is not None:
            found.append(self.mark(phrase, role))
        return found

    def mark(self, phrase: Phrase, role: str) -> SovianWord:
        """The mark of a phrase; it translates the preposition."""
        if role in ("subject", "object"):
            return SovianWord(MARKS[role])
        return self.of(MARKS[role], phrase.at if phrase.form == "possessive" else phrase.marks[0])

    def head(self, phrase: Phrase) -> SovianWord:
        """The noun, name or pronoun of a phrase."""
        if phrase.form == "name":
            return self.of(phrase.lemma, phrase.at)
        if phrase.entity == PLACE:
            return self.fixed(phrase.at)
        if phrase.entity in PEOPLE:
            return self.of(HE + self.ending(phrase), phrase.at)
        if phrase.form == "noun":
            return self.of(NOUNS[phrase.lemma][:-1] + self.ending(phrase), phrase.at, *self.count(phrase))
        nouns = self.said(phrase, "NOUN", "what the thing is")
        return self.of(IT + self.ending(phrase), phrase.at, nouns, *self.count(phrase))

    def relative_word(self, phrase: Phrase, about: Phrase) -> SovianWord:
        """The word for who or which."""
        stem = WHICH if phrase.entity == THING else WHO
        return self.of(stem + self.ending(phrase), phrase.at, (self.start + about.at,), *self.count(phrase))

    def verb(self, clause: Clause, about: Phrase | None) -> SovianWord:
        """The verb; it agrees with its subject, or with what `who` speaks of."""
        subject = about if about is not None and clause.subject.form == "relative" else clause.subject
        needs = [(self.start + subject.at,), *self.count(subject)]
        other = clause.subject.also
        if other is not None:
            return self.of(ARE_TOGETHER, clause.at, *needs, (self.start + other.at,))
        stem = BE if clause.verb == "is" else VERBS[clause.verb]
        return self.of(stem + self.ending(subject), clause.at, *needs)

    def ending(self, phrase: Phrase) -> str:
        """How words end that speak of this person or thing."""
        facts = self.story.facts
        if phrase.entity in PEOPLE:
            return MAN if PEOPLE.index(phrase.entity) == facts.man else WOMAN
        assert facts.noun is not None  # some word says it, or `said` has raised
        vowel, counts = NOUNS[facts.noun][-1], self.count(phrase)
        if not counts:
            return vowel + ONE
        return vowel + (FEW if self.words[counts[0][0]].text in FEW_COUNTS else MANY)

    def count(self, phrase: Phrase) -> list[tuple[int, ...]]:
        """Where the story says how many there are, if the phrase is of several things."""
        several = phrase.entity == THING and phrase.many
        return [self.said(phrase, "NUM", "how many there are")] if several else []

    def said(self, phrase: Phrase, tag: str, what: str) -> tuple[int, ...]:
        """The places of the words with this tag that speak of the thing."""
        places = [p for p, word in enumerate(self.words) if word.tag == tag and word.entity in (THING, None)]
        if not places:
            raise ValueError(
                f"{self.word(phrase.at).text!r} at place {self.start + phrase.at} cannot be translated: "
                f"no word says {what}: {' '.join(word.text for word in self.words)}"
            )
        return tuple(places)

    def fixed(self, place: int) -> SovianWord:
        """A word that never changes."""
        return self.of(FIXED[self.word(place).text], place)

    def of(self, text: str, place: int, *needs: tuple[int, ...]) -> SovianWord:
        """A word that translates the one at this place of the sentence."""
        return SovianWord(text, (self.start + place,), needs)

    def word(self, place: int) -> Word:
        """The word at this place of the sentence."""
        return self.words[self.start + place]
