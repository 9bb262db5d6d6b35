"""A grammar that writes small stories, and can say how likely each of its words was.

    john is in the attic with mary . he has four books .
    john gives the books to mary . the books of mary are ancient .

A story has two people, a thing (one or several) and its holder. It is told by functions that do not know who listens:
each word and each decision goes to a *teller*. One that draws at random (`Draw`, here) makes a story; one
that checks a given text against the grammar (`minigrad.stories.floors`) finds the exact probability of the
text.

What nothing has asked for yet is not decided yet (`Facts`): who is the man, what they are called, what the
thing is. So the same functions tell the second half of a story whose first half is known, and of one whose
first half is not. For both to have the same probabilities, no prior may depend on the order in which facts
are asked for.

Every weight is an integer, and a draw takes `random.Random.random`, whose numbers are the same on every machine and
Python. A test holds the stories' bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple, Protocol, TypeVar

from minigrad.stories.lexicon import OBJECT, POSSESSIVE, SUBJECT, Setting

Choice = TypeVar("Choice")


# --- What is told ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Phrase:
    """A person, the thing or the place as one sentence names it.

    at: where its head word is in the sentence. marks: where its small words are (the, of, four, old).
    """

    entity: str  # first, second, thing, place
    form: str  # name, pronoun, possessive, relative, noun
    lemma: str  # john, he, who, book
    many: bool
    at: int
    marks: tuple[int, ...] = ()
    count: str | None = None
    adjectives: tuple[str, ...] = ()
    possessor: Phrase | None = None  # the books of mary, her books
    also: Phrase | None = None  # john and mary
    relative: Clause | None = None  # john who is tired


@dataclass(frozen=True)
class Clause:
    """A verb with all that depends on it: the syntax tree of a sentence. `at` and `marks` as in Phrase."""

    verb: str
    at: int
    subject: Phrase
    object: Phrase | None = None
    others: tuple[tuple[str, Phrase], ...] = ()  # with their prepositions: to mary, in the attic
    predicate: str | None = None  # the books are ancient
    adverbs: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()

    def heads(self, count: int) -> list[int]:
        """For each of `count` words the place of its head; the verb is its own head."""
        found = [self.at] * count
        _hang_clause(self, self.at, found)
        return found


def _hang_clause(clause: Clause, head: int, found: list[int]) -> None:
    found[clause.at] = head
    for mark in clause.marks:
        found[mark] = clause.at
    for phrase in [clause.subject, clause.object, *(phrase for _, phrase in clause.others)]:
        if phrase is not None:
            _hang_phrase(phrase, clause.at, found)


def _hang_phrase(phrase: Phrase, head: int, found: list[int]) -> None:
    found[phrase.at] = head
    for mark in phrase.marks:
        found[mark] = phrase.at
    for part in (phrase.possessor, phrase.also):
        if part is not None:
            _hang_phrase(part, phrase.at, found)
    if phrase.relative is not None:
        _hang_clause(phrase.relative, phrase.at, found)


@dataclass(frozen=True)
class Word:
    """A word with its gold labels.

    slot: which choice of the grammar it is, and so the phenomenon that a model must know to guess it. rival:
    the word that would be right if that phenomenon were the other way (`she` for `he`), where there is one.
    """

    text: str
    tag: str
    slot: str
    entity: str | None = None
    rival: str | None = None


class Facts(NamedTuple):
    """What is decided so far; None where nothing has asked for it. The two people are 0 and 1."""

    man: int | None = None  # which of the two
    names: tuple[str | None, str | None] = (None, None)
    holder: int | None = None
    kind: str | None = None
    noun: str | None = None
    many: bool | None = None
    age: str | None = None  # old, in `the old books`
    bare: bool = False  # the last sentence named the thing by a pronoun alone


class Teller(Protocol):
    """What takes the words and decides: at random, or by a given text."""

    def choose(self, weights: Mapping[Choice, int]) -> Choice:
        """A decision that shows in no word by itself."""

    def say(
        self, weights: Mapping[str, int], tag: str, slot: str, entity: str | None, rival: str | None
    ) -> str:
        """The next word, one of these."""


# --- How a sentence is told ------------------------------------------------------------------------------


def _evenly(words: Sequence[Choice]) -> dict[Choice, int]:
    return dict.fromkeys(words, 1)


@dataclass
class Sentence:
    """A sentence in the making: the facts so far, and the teller. Each method says a part and returns it."""

    teller: Teller
    facts: Facts
    setting: Setting
    length: int = 0
    adverbs: list[str] = field(default_factory=list)
    adverb_marks: list[int] = field(default_factory=list)

    def say(
        self,
        words: str | Mapping[str, int],
        tag: str,
        slot: str = "glue",
        entity: str | None = None,
        rival: str | None = None,
    ) -> str:
        """One word."""
        weights = {words: 1} if isinstance(words, str) else words
        self.length += 1
        return self.teller.say(weights, tag, slot, entity, rival)

    def chance(self, tenths: int) -> bool:
        """True in `tenths` out of ten cases."""
        return self.teller.choose({True: tenths, False: 10 - tenths})

    def know(self, **facts: object) -> None:
        """From here on these facts are decided."""
        self.facts = self.facts._replace(**facts)  # type: ignore[arg-type]

    # --- People ---

    def holder(self) -> int:
        """Who has the thing."""
        if self.facts.holder is None:
            self.know(holder=self.teller.choose({0: 1, 1: 1}))
        assert self.facts.holder is not None
        return self.facts.holder

    def name(self, who: int, slot: str, marks: tuple[int, ...] = (), other_is_met: bool = True) -> Phrase:
        """A person by name: one that is known, or any that fits.

        marks: of words said for it before. other_is_met: whether a clause may speak of the other by a pronoun.
        """
        names, lexicon = self.facts.names, self.setting.lexicon
        known, rival = names[who], names[1 - who]
        fitting: tuple[str, ...]
        if known is not None:
            fitting = (known,)
        elif self.facts.man is not None:
            fitting = lexicon.men if self.facts.man == who else lexicon.women
        else:
            fitting = (*lexicon.men, *lexicon.women)
        at = self.length
        name = self.say(_evenly(fitting), "NAME", slot, PEOPLE[who], rival)
        self.know(
            names=(name, names[1]) if who == 0 else (names[0], name),
            man=who if name in lexicon.men else 1 - who,
        )
        relative = None
        if self.setting.relatives and self.chance(self.setting.relatives):
            relative = self.who(who, other_is_met)
        return Phrase(PEOPLE[who], "name", name, False, at, marks, relative=relative)

    def who(self, person: int, other_is_met: bool) -> Clause:
        """A clause about a person who was just named: who is tired, who likes mary."""
        start = self.length
        self.say("who", "PRON", entity=PEOPLE[person])
        subject = Phrase(PEOPLE[person], "relative", "who", False, start)
        if self.teller.choose({"is": 1, "likes": int(other_is_met)}) == "is":
            self.say("is", "VERB", "number of the verb", rival="are")
            mood = self.say(_evenly(self.setting.lexicon.moods), "ADJ", "mood")
            return Clause("is", start + 1, subject, predicate=mood, marks=(start + 2,))
        self.say("likes", "VERB")
        return Clause("likes", start + 1, subject, self.pronoun(1 - person, OBJECT))

    def pronoun(
        self, who: int, forms: Mapping[bool, str], slot: str = "gender", marks: tuple[int, ...] = ()
    ) -> Phrase:
        """A person by a pronoun; `forms` has the man's and the woman's."""
        if self.facts.man is None:
            weights = _evenly(list(forms.values()))
        else:
            weights = _evenly([forms[self.facts.man == who]])
        at = self.length
        rival = None if self.facts.man is None else forms[self.facts.man != who]
        said = self.say(weights, "PRON", slot, PEOPLE[who], rival)
        self.know(man=who if said == forms[True] else 1 - who)
        form = "possessive" if forms is POSSESSIVE else "pronoun"
        lemma = SUBJECT[self.facts.man == who]
        return Phrase(PEOPLE[who], form, lemma, False, at, marks)

    def person(
        self,
        who: int,
        form: str,
        forms: Mapping[bool, str],
        slot: str = "person again",
        marks: tuple[int, ...] = (),
    ) -> Phrase:
        """A person who was met before, in the form `name` or `pronoun`: the slot is the same for both,
        because a model that guesses the word does not see which form it has."""
        if form == "name":
            return self.name(who, slot, marks)
        return self.pronoun(who, forms, slot, marks)

    # --- The thing ---

    def noun(self, slot: str, many: bool | None = None) -> tuple[str, bool]:
        """The noun of the thing: what is known, or all that fits. Returns its singular, and whether it was a plural."""
        facts, kinds = self.facts, self.setting.lexicon.kinds
        if facts.noun is not None:
            nouns: Sequence[str] = [facts.noun]
        elif facts.kind is not None:
            nouns = kinds[facts.kind].nouns
        else:
            nouns = [noun for kind in kinds.values() for noun in kind.nouns]
        many = facts.many if many is None else many
        numbers = [False, True] if many is None else [many]
        forms = {(noun + "s" if number else noun): (noun, number) for noun in nouns for number in numbers}
        rival = None
        if len(forms) == 1:
            ((noun, number),) = forms.values()
            rival = noun if number else noun + "s"
        noun, number = forms[self.say(_evenly(list(forms)), "NOUN", slot, THING, rival)]
        self.know(noun=noun, kind=self.setting.lexicon.kind_of(noun), many=number)
        return noun, number

    def age(self) -> tuple[str, ...]:
        """Maybe an adjective that all things take; for one thing always the same."""
        if not self.setting.ages or not self.chance(self.setting.ages):
            return ()
        known = self.facts.age
        age = self.say(_evenly(self.setting.lexicon.ages if known is None else [known]), "ADJ", "age")
        self.know(age=age)
        return (age,)

    def the_thing(self, marks: tuple[int, ...] = ()) -> Phrase:
        """The thing by its noun: the old books."""
        start = self.length
        self.say("the", "DET")
        adjectives = self.age()
        noun, many = self.noun("noun again")
        at = self.length - 1
        return Phrase(THING, "noun", noun, many, at, (*marks, *range(start, at)), adjectives=adjectives)

    def it(self) -> Phrase:
        """The thing by a pronoun."""
        many = self.facts.many
        weights = _evenly(["it", "them"]) if many is None else _evenly(["them" if many else "it"])
        rival = None if many is None else "it" if many else "them"
        said = self.say(weights, "PRON", "it or them", THING, rival)
        self.know(many=said == "them")
        return Phrase(THING, "pronoun", "it", said == "them", self.length - 1)

    # --- Around the verb ---

    def adverb(self, words: Sequence[str]) -> None:
        """Maybe an adverb."""
        if self.setting.adverbs and self.chance(self.setting.adverbs):
            self.adverb_marks.append(self.length)
            self.adverbs.append(self.say(_evenly(words), "ADV", "adverb"))

    def preposition(self, word: str) -> tuple[int, ...]:
        """A preposition, as the mark of what follows it."""
        self.say(word, "PREP", "preposition")
        return (self.length - 1,)

    def be(self, many: bool) -> int:
        """The verb to be; returns where it stands."""
        self.say("are" if many else "is", "VERB", "number of the verb", rival="is" if many else "are")
        return self.length - 1

    def end(self, clause: Clause) -> Clause:
        """The full stop."""
        if not self.adverbs:
            self.adverb(self.setting.lexicon.times)
        self.say(".", "STOP")
        return replace(
            clause, adverbs=tuple(self.adverbs), marks=(*clause.marks, *self.adverb_marks, self.length - 1)
        )


PEOPLE = ("first", "second")
THING, PLACE = "thing", "place"


# --- The sentences ---------------------------------------------------------------------------------------


def scene(s: Sentence) -> Clause:
    """john is in the attic with mary . / john and mary are in the attic ."""
    together = s.teller.choose({True: 1, False: 1})
    s.adverb(s.setting.lexicon.times)
    first = s.name(0, "name", other_is_met=False)
    if together:
        s.say("and", "CONJ")
        second = s.name(1, "name", marks=(s.length - 1,))
        first = replace(first, also=second)
    verb = s.be(many=together)
    in_place = s.preposition("in")
    s.say("the", "DET")
    place = s.say(_evenly(s.setting.lexicon.places), "NOUN", "place", PLACE)
    others = [("in", Phrase(PLACE, "noun", place, False, s.length - 1, (*in_place, s.length - 2)))]
    if not together:
        others.append(("with", s.name(1, "name", s.preposition("with"))))
    return s.end(Clause("is", verb, first, others=tuple(others)))


def possession(s: Sentence) -> Clause:
    """he has four books ."""
    holder = s.holder()
    s.adverb(s.setting.lexicon.times)
    if s.setting.scene:
        subject = s.person(holder, s.teller.choose({"name": 1, "pronoun": 2}), SUBJECT)
    else:
        subject = s.name(holder, "name")
    s.say("has", "VERB")
    verb = start = s.length - 1
    lexicon, many = s.setting.lexicon, s.facts.many
    counts = {word: weight for word, weight in lexicon.counts.items() if many in (None, word != "one")}
    count = s.say(counts, "NUM", "count")
    adjectives = s.age()
    noun, number = s.noun("noun", many=count != "one")
    thing = Phrase(
        THING, "noun", noun, number, s.length - 1, tuple(range(start + 1, s.length - 1)), count, adjectives
    )
    return s.end(Clause("has", verb, subject, thing))


def event(s: Sentence, met: bool = True) -> Clause:
    """john gives the books to mary . mary keeps them . she takes them from him .

    At least one of the two is named. met: whether the story has named both before.
    """
    holder, lexicon = s.holder(), s.setting.lexicon
    who = s.teller.choose(
        {
            "the holder, with the other": 2,
            "the holder alone": int(met and bool(lexicon.keeps)),
            "the other": int(bool(lexicon.takes)),
        }
    )
    actor = 1 - holder if who == "the other" else holder
    forms = {("name", "name"): 1, ("name", "pronoun"): 1, ("pronoun", "name"): 1}
    if who == "the holder alone":
        forms = {("name", "none"): 1}
    elif not met:
        del forms[("name", "pronoun") if actor == holder else ("pronoun", "name")]
    subject_form, other_form = s.teller.choose(forms)
    s.adverb(lexicon.times)
    subject = s.person(actor, subject_form, SUBJECT)
    s.adverb(lexicon.manners)
    verbs = {
        "the holder, with the other": (*lexicon.gives, *lexicon.shows, *lexicon.hides),
        "the holder alone": lexicon.keeps,
        "the other": lexicon.takes,
    }
    said = s.say(_evenly(verbs[who]), "VERB", "event")
    verb = s.length - 1
    bare = s.teller.choose({True: 1, False: 2})
    thing = s.it() if bare else s.the_thing()
    s.know(bare=bare)
    others: tuple[tuple[str, Phrase], ...] = ()
    if who != "the holder alone":
        word = "to" if said in (*lexicon.gives, *lexicon.shows) else "from"
        others = ((word, s.person(1 - actor, other_form, OBJECT, marks=s.preposition(word))),)
    if said in (*lexicon.gives, *lexicon.takes):
        s.know(holder=1 - holder)
    return s.end(Clause(said, verb, subject, thing, others))


def remark(s: Sentence) -> Clause:
    """the books of mary are ancient . her books are ancient . she reads them . mary reads the books ."""
    holder = s.holder()
    form = s.teller.choose({"of": 2, "possessive": 1, "use": 3})
    s.adverb(s.setting.lexicon.times)
    kinds = s.setting.lexicon.kinds
    if form == "use":
        named = s.teller.choose({"name": 1, "pronoun": 1})
        subject = s.person(holder, named, SUBJECT, "who has it")
        s.adverb(s.setting.lexicon.manners)
        fitting = [kinds[s.facts.kind]] if s.facts.kind else list(kinds.values())
        verb_word = s.say(_evenly([verb for kind in fitting for verb in kind.verbs]), "VERB", "kind")
        verb = s.length - 1
        s.know(kind=next(name for name, kind in kinds.items() if verb_word in kind.verbs))
        thing = s.the_thing() if s.facts.bare or s.teller.choose({True: 1, False: 1}) else s.it()
        s.know(bare=False)
        return s.end(Clause(verb_word, verb, subject, thing))
    thing = _owned(s, holder, form)
    if s.setting.relatives and s.chance(s.setting.relatives):
        thing = replace(thing, relative=_which(s, thing))
    verb = s.be(thing.many)
    assert s.facts.kind is not None  # the noun has been said
    predicate = s.say(_evenly(kinds[s.facts.kind].adjectives), "ADJ", "kind")
    s.know(bare=False)
    return s.end(Clause("is", verb, thing, predicate=predicate, marks=(s.length - 1,)))


def _owned(s: Sentence, holder: int, form: str) -> Phrase:
    """the old books of mary / her old books"""
    if form == "of":
        thing = s.the_thing()
        return replace(thing, possessor=s.name(holder, "who has it", s.preposition("of")))
    owner = s.pronoun(holder, POSSESSIVE, "who has it")
    start = s.length
    adjectives = s.age()
    noun, many = s.noun("noun again")
    at = s.length - 1
    return Phrase(THING, "noun", noun, many, at, tuple(range(start, at)), None, adjectives, possessor=owner)


def _which(s: Sentence, thing: Phrase) -> Clause:
    """which he likes: a clause about the thing."""
    s.say("which", "PRON", entity=THING)
    which = Phrase(THING, "relative", "which", thing.many, s.length - 1)
    subject = s.pronoun(s.teller.choose({0: 1, 1: 1}), SUBJECT)
    s.say("likes", "VERB")
    return Clause("likes", s.length - 1, subject, which)


def plan(setting: Setting, count: int) -> list[Callable[[Sentence], Clause]]:
    """The functions that tell a story of `count` sentences, in order."""
    told: list[Callable[[Sentence], Clause]] = [scene, possession] if setting.scene else [possession]
    first = len(told)
    for i in range(count - first):
        if i % 2:
            told.append(remark)
        elif i == 0 and not setting.scene:
            told.append(lambda s: event(s, met=False))
        else:
            told.append(event)
    return told[:count]


# --- A story by lot --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """Sentences of words with their labels, and the syntax tree of each."""

    sentences: tuple[tuple[Word, ...], ...]
    trees: tuple[Clause, ...]
    holders: tuple[int | None, ...]  # after each sentence, who has the thing
    facts: Facts

    def texts(self) -> list[str]:
        """The sentences, words separated by spaces."""
        return [" ".join(word.text for word in sentence) for sentence in self.sentences]


class Draw:
    """A teller that draws."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.words: list[Word] = []

    def choose(self, weights: Mapping[Choice, int]) -> Choice:
        """One of these, as often as its weight says."""
        if len(weights) == 1:
            return next(iter(weights))
        place = self.rng.random() * sum(weights.values())
        for item, weight in weights.items():
            place -= weight
            if place < 0:
                return item
        raise AssertionError("a draw below 1 lies within the weights")

    def say(
        self, weights: Mapping[str, int], tag: str, slot: str, entity: str | None, rival: str | None
    ) -> str:
        """One of these words."""
        word = self.choose(weights)
        self.words.append(Word(word, tag, slot, entity, rival))
        return word


def tell_story(setting: Setting, seed: int, first: int = 0) -> Story:
    """The story of this number; with `first`, only its sentences from that place on.

    Such an end follows a beginning that nobody has heard, and is as likely as it is in whole stories.
    """
    draw = Draw(Random(seed))
    facts = Facts()
    sentences, trees, holders = [], [], []
    for tell in plan(setting, draw.choose(_evenly(setting.sentences)))[first:]:
        draw.words = []
        sentence = Sentence(draw, facts, setting)
        trees.append(tell(sentence))
        facts = sentence.facts
        sentences.append(tuple(draw.words))
        holders.append(facts.holder)
    return Story(tuple(sentences), tuple(trees), tuple(holders), facts)
