"""A second translator into Sovian, which has nothing but the text: no tree, no labels.

It cuts an English sentence by its words alone. So whatever it translates as `language.translate` does is a function of
the text. It shares the words with `language`, and none of the grammar.
"""

from __future__ import annotations

from minigrad.stories.language import FIXED, NOUNS, VERBS
from minigrad.stories.lexicon import FULL

SINGULAR = {**{noun: noun for noun in NOUNS}, **{noun + "s": noun for noun in NOUNS}}
GENDER = {
    **dict.fromkeys([*FULL.men, "he", "him", "his"], "um"),
    **dict.fromkeys([*FULL.women, "she", "her"], "em"),
}
ADJECTIVES = {
    *FULL.ages,
    *FULL.moods,
    *(adjective for kind in FULL.kinds.values() for adjective in kind.adjectives),
}
PREPOSITIONS = {"to": "du", "from": "fe", "in": "lu", "with": "po"}


def translate_text(text: str) -> str:
    """A story's text in Sovian."""
    words = text.split()
    nouns = {SINGULAR[word] for word in words if word in SINGULAR}
    counts = {word for word in words if word in FULL.counts}
    assert len(nouns) <= 1
    assert len(counts) <= 1
    said: list[str] = []
    parser = Parser(words, nouns, counts)
    while parser.left:
        said += parser.sentence()
    return " ".join(said)


class Parser:
    """Takes words from the front; each method takes one thing and returns it in Sovian."""

    def __init__(self, words, nouns, counts):
        self.left = list(words)
        self.vowel = NOUNS[next(iter(nouns))][-1] if nouns else None
        self.several = "n" if counts & {"two", "three"} else "s" if counts & {"four", "five"} else None

    def next_is(self, words):
        return self.left[0] in words

    def take(self):
        return self.left.pop(0)

    def taken(self, words):
        """All words from the front that are among these."""
        found = []
        while self.next_is(words):
            found.append(self.take())
        return found

    def thing(self, stem, many):
        return stem + self.vowel + (self.several if many else "")

    def sentence(self):
        when = self.taken(FULL.times)
        subject, ending = self.nominal()
        subject.append("ga")
        how = self.taken(FULL.manners)
        verb = self.take()
        behind, what = [], []
        if verb not in ("is", "are"):
            behind.append([*self.nominal()[0], "ko"])
        elif self.next_is(ADJECTIVES):
            what = [FIXED[self.take()]]
        while self.next_is(PREPOSITIONS):
            mark = PREPOSITIONS[self.take()]
            behind.insert(0, [*self.nominal()[0], mark])
        if verb in VERBS and len(behind) == 2:
            assert behind[-1][-1] == "ko"
        when += self.taken(FULL.times)
        assert self.take() == "."
        stem = "vr" if verb in ("is", "are") else VERBS[verb]
        return [
            *(FIXED[word] for word in when),
            *subject,
            *(word for phrase in behind for word in phrase),
            *what,
            *(FIXED[word] for word in how),
            stem + ending,
            ".",
        ]

    def nominal(self):
        """A phrase without its mark, and how a verb ends whose subject it is."""
        if self.next_is(("it", "them")):
            many = self.take() == "them"
            return [self.thing("l", many)], None
        if self.next_is((*FULL.men, *FULL.women)):
            found, ending = self.name()
            if self.next_is(("and",)):
                self.take()
                return [*found, "ul", *self.name()[0]], "un"
            return found, ending
        if self.next_is(GENDER):
            ending = GENDER[self.left[0]]
            if self.left[0] == "his" or (self.left[0] == "her" and self.left[1] in {*SINGULAR, *ADJECTIVES}):
                self.take()
                found, of_thing = self.noun()
                return ["t" + ending, "zi", *found, *self.which()], of_thing
            self.take()
            return ["t" + ending], ending
        if self.next_is(("the",)):
            self.take()
        if self.next_is(FULL.places):
            return [FIXED[self.take()]], None
        found, ending = self.noun()
        if self.next_is(("of",)):
            self.take()
            found = [*self.name()[0], "zi", *found]
        return [*found, *self.which()], ending

    def noun(self):
        """A noun with what stands before it."""
        before = self.taken({*FULL.counts, *ADJECTIVES})
        noun = self.take()
        ending = self.thing("", noun != SINGULAR[noun])
        return [NOUNS[SINGULAR[noun]][:-1] + ending, *(FIXED[word] for word in reversed(before))], ending

    def which(self):
        """Maybe a clause about the thing just named: `which he likes`. Its ending is taken from the verb behind it."""
        if not self.next_is(("which",)):
            return []
        self.take()
        gender = GENDER[self.take()]
        assert self.take() == "likes"
        return [self.thing("kr", self.next_is(("are",))), "t" + gender, "ga", "mil" + gender]

    def name(self):
        """A name, maybe with a clause."""
        name = self.take()
        gender = GENDER[name]
        if not self.next_is(("who",)):
            return [name], gender
        self.take()
        if self.take() == "is":
            return [name, "gr" + gender, FIXED[self.take()], "vr" + gender], gender
        return [name, "gr" + gender, "t" + GENDER[self.take()], "ko", "mil" + gender], gender
