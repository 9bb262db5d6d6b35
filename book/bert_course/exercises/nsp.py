"""Chapter `nsp`: pairs of texts, and what gives their label away."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- make_pair -------------------------------------------------------------------------------------------


def _pair_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def documents(*sizes: int) -> list[list[list[int]]]:
        return [[rng.integers(5, 99, rng.integers(1, 5)).tolist() for _ in range(size)] for size in sizes]

    yield "B is next", documents(6, 5, 7), 1, 0, 2, 4, True, 0, 1
    yield "B is random", documents(9, 5, 7), 2, 1, 2, 4, False, 0, 3
    yield "a random B of a document behind A's", documents(6, 8, 7), 0, 1, 3, 5, False, 0, 2
    yield "a random B of the last document", documents(6, 5, 7, 4), 1, 0, 3, 5, False, 2, 0
    yield "A of one sentence, B of three", documents(6, 5), 0, 2, 3, 6, True, 0, 0
    yield "A of one sentence, a random B of three", documents(6, 9), 0, 2, 3, 6, False, 0, 1
    yield "A of three sentences, a random B of one", documents(7, 9), 1, 2, 5, 6, False, 0, 6


@exercise(
    difficulty=1,
    minutes=10,
    cases=_pair_cases,
    hints="""
A is the same in both cases: sentences start to middle of document `number`. In a list of lists, sum(lists, []) joins the lists.

A random B has as many sentences as the B that it replaces, end - middle, from sentence `place` on.

`other` counts the documents without A's own. From A's document on, the number in `documents` is one higher: other + (other >= number).
""",
    mistakes="""
Your labels are exchanged. In BERT the label is 0 if B is next and 1 if B is random.
    document[middle:end], 0 -> document[middle:end], 1 ; end - middle], 1 -> end - middle], 0
Your label is 0 for every pair. It is 1 if B is random.
    end - middle], 1 -> end - middle], 0
Your label is 1 for every pair. It is 0 if B is next.
    document[middle:end], 0 -> document[middle:end], 1
You take `other` as an index into `documents`. It counts the documents without A's own, so that B can never be from A's document.
    documents[other + (other >= number)] -> documents[other]
You skip A's document one place too late. If other == number, `other` without the 1 is A's own document.
    other >= number -> other > number
You skip a document even before A's own. Up to A's document, `other` is the index in `documents`.
    other + (other >= number) -> other + 1
Your random B is from A's document. Take it from another one.
    documents[other + (other >= number)] -> document
Your random B begins at the first sentence of its document. Then its first words give the label away. Start at `place`.
    source[place : place + end - middle] -> source[: end - middle]
Your random B goes on to the end of its document. Then its length gives the label away. It has as many sentences as the B that it replaces, end - middle.
    source[place : place + end - middle] -> source[place:]
Your random B has as many sentences as the whole chunk. Then its length gives the label away. It has as many as the B that it replaces, end - middle.
    place + end - middle -> place + end - start
Your random B has as many sentences as A. It should have as many as the B that it replaces, end - middle.
    place + end - middle -> place + middle - start
Your random B has one sentence. B is a run of as many sentences as the B that it replaces, end - middle.
    place + end - middle -> place + 1
You put the rest of the chunk in front of the random B. A random B replaces it.
    source[place : place + end - middle] -> document[middle:end] + source[place : place + end - middle]
Your B is the next sentence only. B is a run: all sentences from middle to end.
    document[middle:end] -> document[middle : middle + 1]
Your A is the whole chunk. A ends at `middle`.
    document[start:middle] -> document[start:end]
Your A is one sentence. A is a run: all sentences from start to middle.
    document[start:middle] -> document[start : start + 1]
Sentence `middle` belongs to B. A ends with the sentence before it.
    document[start:middle] -> document[start : middle + 1]
    document[start:middle] -> document[start : middle + 1] ; document[middle:end], 0 -> document[middle + 1 : end], 0
You leave sentence `middle` out. B begins with it.
    document[middle:end], 0 -> document[middle + 1 : end], 0
A and B have changed places.
    joined(a), joined(b), label -> joined(b), joined(a), label
You return lists of sentences. Join the sentences of A, and those of B, to one list of ids each.
    joined(a), joined(b), label -> a, b, label
The label comes third, after A and B.
    joined(a), joined(b), label -> label, joined(a), joined(b)
""",
)
def make_pair(documents, number, start, middle, end, is_next, other, place):
    def joined(sentences):
        return [token for sentence in sentences for token in sentence]  #: one list of the sentences' ids

    document = documents[number]  #: the document of A
    a = document[start:middle]  #: the sentences of A, up to the one before middle
    if is_next:
        b, label = document[middle:end], 0  #: the rest of the chunk, and the label of IsNext
    else:
        source = documents[other + (other >= number)]  #: the document of a random B, never A's own
        b, label = source[place : place + end - middle], 1  #: a random B of the rest's size, and its label
    return joined(a), joined(b), label


# --- share_of_next ---------------------------------------------------------------------------------------


def _share_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "2 sentences in one chunk", 2, 2
    yield "3 sentences in one chunk", 3, 3
    yield "more room than sentences", 4, 9
    yield "1 sentence", 1, 3
    yield "chunks of 1 sentence", 5, 1
    yield "6 sentences, chunks of 2", 6, 2
    yield "5 sentences, chunks of 3", 5, 3
    yield "7 sentences, chunks of 3", 7, 3
    yield "a long document", int(rng.integers(40, 60)), int(rng.integers(4, 8))
    yield "a document of fifty chunks", 100, 2


@exercise(
    difficulty=3,
    minutes=30,
    cases=_share_cases,
    hints="""
Think of what is left. With r sentences left the next chunk has n = min(r, most) of them. If n is 1, the pair is NotNext and r - 1 are left.

If n is 2 or more: with probability 1/2 the pair is IsNext, and r - n are left. Otherwise the pair is NotNext, and r - cut are left, where cut is 1, 2, ... or n - 1, all equally likely.

Let N(r) be the expected number of IsNext from r sentences, and P(r) that of all pairs: N(0) = P(0) = 0, N(r) = 1/2 (1 + N(r - n)) + 1/2 mean N(r - cut), and P(r) = 1 + 1/2 P(r - n) + 1/2 mean P(r - cut). The share is N / P at the end.
""",
    mistakes="""
[coin-for-all] You toss a coin for every chunk. A chunk of one sentence has nothing left for B, so its pair is NotNext without a coin.
    return 0.5
    nexts.append(nexts[left - 1]) -> nexts.append(0.5 + nexts[left - 1])
You leave out the pairs of single sentences. They are pairs, all of them NotNext.
    pairs.append(1 + pairs[left - 1]) -> pairs.append(pairs[left - 1]) ; return nexts[sentences] / pairs[sentences] -> return nexts[sentences] / pairs[sentences] if pairs[sentences] else 0.0
    pairs.append(1 + pairs[left - 1]) -> pairs.append(pairs[left - 1])
After a NotNext you go on after the whole chunk. The rest was not used, so it is put back, and the next chunk begins with it.
    sum(nexts[left - cut] for cut in range(1, n)) / (n - 1) -> nexts[left - n] ; sum(pairs[left - cut] for cut in range(1, n)) / (n - 1) -> pairs[left - n]
You sometimes let A be the whole chunk. A has 1 to n - 1 sentences, so that something is left for B.
    for cut in range(1, n)) / (n - 1) -> for cut in range(1, n + 1)) / n
You let A be one sentence. It has 1 to n - 1, all equally likely.
    sum(nexts[left - cut] for cut in range(1, n)) / (n - 1) -> nexts[left - 1] ; sum(pairs[left - cut] for cut in range(1, n)) / (n - 1) -> pairs[left - 1]
You let A be all sentences but the last. It has 1 to n - 1, all equally likely.
    sum(nexts[left - cut] for cut in range(1, n)) / (n - 1) -> nexts[left - n + 1] ; sum(pairs[left - cut] for cut in range(1, n)) / (n - 1) -> pairs[left - n + 1]
You let A be half of the chunk. It has 1 to n - 1 sentences, all equally likely.
    sum(nexts[left - cut] for cut in range(1, n)) / (n - 1) -> nexts[left - n // 2] ; sum(pairs[left - cut] for cut in range(1, n)) / (n - 1) -> pairs[left - n // 2]
After an IsNext you put the rest back. But B has used the rest, so the next chunk starts after it.
    0.5 * (1 + nexts[left - n]) -> 0.5 * (1 + sum(nexts[left - cut] for cut in range(1, n)) / (n - 1)) ; 0.5 * pairs[left - n] -> 0.5 * sum(pairs[left - cut] for cut in range(1, n)) / (n - 1)
The chunk can have fewer than `most` sentences. At the end of the document it has what is left.
    n = min(left, most) -> n = most if most <= left else 1
You take every chunk to be the whole rest of the document. It has at most `most` sentences.
    n = min(left, most) -> n = left
You average the shares of single documents. Add up IsNext and pairs over many documents, and then divide: a document with many pairs counts more.
    shares = [{(0, 0): 1.0}]  # by left: how likely so many IsNext in so many pairs
    for left in range(1, sentences + 1):
        n, found = min(left, most), {}
        ways = [(n, int(n > 1), 0.5 if n > 1 else 1.0)] + [(cut, 0, 0.5 / (n - 1)) for cut in range(1, n)]
        for used, is_next, chance in ways:
            for (a, b), other in shares[left - used].items():
                found[a + is_next, b + 1] = found.get((a + is_next, b + 1), 0) + chance * other
        shares.append(found)
    return sum(chance * a / b for (a, b), chance in shares[-1].items())
That is the expected number of IsNext. Divide by the expected number of pairs.
    return nexts[sentences] / pairs[sentences] -> return nexts[sentences]
That is the share of NotNext.
    return nexts[sentences] / pairs[sentences] -> return 1 - nexts[sentences] / pairs[sentences]
For long documents you return 1/2. The share comes near to 1/2 but never reaches it, so go through the sentences of long documents too.
    return nexts[sentences] / pairs[sentences] -> return nexts[sentences] / pairs[sentences] if sentences < 20 * most or most == 1 else 0.5
    return nexts[sentences] / pairs[sentences] -> return nexts[sentences] / pairs[sentences] if sentences < 10 * most or most == 1 else 0.5
That is the number of IsNext for each NotNext. Divide by all pairs.
    return nexts[sentences] / pairs[sentences] -> return nexts[sentences] / (pairs[sentences] - nexts[sentences])
""",
)
def share_of_next(sentences, most):
    nexts, pairs = [0.0], [0.0]  #: the expected IsNext and pairs, by the sentences left
    for left in range(1, sentences + 1):  #: every number of sentences left, smallest first
        n = min(left, most)  #: the number of sentences in the next chunk
        if n == 1:
            nexts.append(nexts[left - 1])  #: the expected number of IsNext after this lone sentence
            pairs.append(1 + pairs[left - 1])  #: this pair, and the expected number of pairs after it
        else:
            nexts.append(
                0.5 * (1 + nexts[left - n]) + 0.5 * sum(nexts[left - cut] for cut in range(1, n)) / (n - 1)
            )  #: the expected number of IsNext, averaged over the coin
            pairs.append(
                1 + 0.5 * pairs[left - n] + 0.5 * sum(pairs[left - cut] for cut in range(1, n)) / (n - 1)
            )  #: this pair, and the expected number after either toss
    # In a long document only the end makes chunks of one sentence: the share goes to 1/2 (if most is not 1).
    return nexts[sentences] / pairs[sentences]


# --- hard_negative ---------------------------------------------------------------------------------------


def _negative_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def text(sentences: str) -> list[list[str]]:
        return [sentence.split() for sentence in sentences.split(" . ")]

    river = text("the river is high . the bank is wet . we walk home . it is late")
    money = text("the bank opens . we wait . the bank has money . money is late")
    birds = text("we hear birds . the birds walk . it is a high river bank . birds sing")
    yield "one sentence", [river, money, birds], 0, river[1], 1
    yield "two sentences", [river, money, birds], 0, river[0] + river[1], 2
    yield "A of the second document", [river, money, birds], 1, money[0] + money[1], 2
    twice = ["bank", "bank", "bank", "late", "it"]
    yield "A repeats a word", [text("a bank . it is late . we go"), money], 1, twice, 1
    again = text("bank bank bank bank . it is late . the bank")
    yield "B says a word twice", [money, again], 0, ["it", "is", "bank"], 1
    yield "two runs that share as many words", [river, text("we . home . we home . home we")], 0, river[2], 1
    yield "two documents that share as many words", [money, birds, birds], 0, ["birds", "walk"], 2
    yield "a document that is too short", [river, text("the bank is wet"), money], 0, river[1], 4
    yield "nothing shared", [river, text("no . word . of . it")], 0, ["birds"], 2
    words = [f"w{i}" for i in range(12)]
    drawn = [[rng.choice(words, 3).tolist() for _ in range(int(size))] for size in rng.integers(4, 9, 4)]
    yield "a random text", drawn, 2, drawn[2][0] + drawn[2][1], 2


@exercise(
    difficulty=2,
    minutes=20,
    cases=_negative_cases,
    hints="""
Go through all documents but A's own, and in each through all positions from which `size` sentences are left.

Different words: make a set of A's words and a set of the run's words. The number that counts is len(set_a & set_b).

Keep the best so far with its document and position, and replace it only if a run shares *more*. Start below 0, so that a run that shares nothing can be the best too.
""",
    mistakes="""
Your B can be from A's own document. Then topic no longer gives the label away, which makes it another task. Leave A's document out.
    if other != number -> if True
You count how often the shared words occur in B. Count different words, or a B that repeats one word wins.
    len(set(a) & words) -> sum(word in set(a) for sentence in document[place : place + size] for word in sentence)
You count how often the shared words occur in A. Count different words.
    len(set(a) & words) -> sum(word in words for word in a)
Of runs that share as many words you take the last. Take the first.
    shared > most -> shared >= most
You take the run that shares the fewest words. That is the easiest negative: the count of shared words finds it.
    shared > most -> (most < 0 or shared < most)
Your last position is missing. A run may end where its document ends.
    len(document) - size + 1 -> len(document) - size
Your run is shorter than `size` at the end of a document. Then its length gives the label away.
    len(document) - size + 1 -> len(document)
You look at the first sentence of each run only. The run has `size` sentences.
    document[place : place + size] -> document[place : place + 1]
You look only at runs that open their document. Then the first words of B give the label away.
    range(len(document) - size + 1) -> range(min(1, len(document) - size + 1))
You divide by the number of words in the run. The task counts shared words.
    len(set(a) & words) -> len(set(a) & words) / max(1, len(words))
If nothing is shared, your function finds no run. Any run will do then, so take the first.
    most, best = -1, None -> most, best = 0, None
You return how many words are shared. Return the document and the position.
    return best -> return most
The document comes first, then the position.
    return best -> return best[::-1]
You count positions through all documents. Return the number of the document and the position in it.
    return best -> return best[0], sum(map(len, documents[: best[0]])) + best[1]
You count the documents without A's own. Return its index in `documents`.
    return best -> return best[0] - (best[0] > number), best[1]
""",
)
def hard_negative(documents, number, a, size):
    most, best = -1, None  # B can then share more with A than a neighbour does, which gives it away
    for other, document in enumerate(documents):  #: every document, with its index
        if other != number:
            for place in range(len(document) - size + 1):  #: every place from which size sentences are left
                words = {word for sentence in document[place : place + size] for word in sentence}
                shared = len(set(a) & words)  #: the number of different words shared with A
                if shared > most:
                    most, best = shared, (other, place)  #: the most shared words so far, and their run
    return best


# --- name_the_mistake ------------------------------------------------------------------------------------


Run = list[tuple[int, int]]  # sentences, each as its document and its place there
Maker = Callable[[np.random.Generator], list[tuple[Run, Run, int]]]


def _maker(mistake: str, documents: int = 12, sentences: int = 20, n: int = 5, own: bool = False) -> Maker:
    """A maker of pairs; own: whether a random B may be of A's document by chance."""

    def make(rng: np.random.Generator) -> list[tuple[Run, Run, int]]:
        pairs = []
        for document in range(documents):
            for _ in range(2):
                for start in range(0, sentences - n + 1, n):
                    middle = start + int(rng.integers(1, n - (mistake == "short")))
                    a = [(document, place) for place in range(start, middle)]
                    b = [(document, place) for place in range(middle, start + n)]
                    label = int(rng.integers(2))
                    if label:
                        b = elsewhere(rng, document, len(b))
                    pairs.append((a, b, 1 - label if mistake == "label" else label))
        return pairs

    def elsewhere(rng: np.random.Generator, document: int, size: int) -> Run:
        other = int(rng.integers(documents - (not own)))
        other += not own and other >= document
        other = document if mistake == "document" else other
        size = {"length": n, "short": 1}.get(mistake, size)
        at = 0 if mistake == "opening" else int(rng.integers(sentences - size + 1))
        return [(other, place) for place in range(at, at + size)]

    return make


def _mistake_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    del rng
    yield "a sound maker", _maker("none")
    yield "a sound maker that may draw A's own document", _maker("none", own=True)
    yield "a sound maker with few documents", _maker("none", documents=3, sentences=80, own=True)
    for mistake in ("label", "document", "opening", "length"):
        yield f"a maker with the mistake {mistake!r}", _maker(mistake)
        yield f"{mistake!r}, chunks of 3 sentences", _maker(mistake, n=3, sentences=30)
    yield "'length', B of a NotNext is shorter", _maker("short")
    yield "a maker with chunks of 2 sentences", _maker("none", n=2)
    yield "'opening', chunks of 2 sentences", _maker("opening", n=2)


@exercise(
    difficulty=2,
    minutes=25,
    cases=_mistake_cases,
    hints="""
Make the pairs once, with a generator of your own, and sort them by label.

B follows A if b[0] is the sentence after a[-1]: (a[-1][0], a[-1][1] + 1). In a sound maker that is so in every pair with the label 0.

For the other mistakes look at *all* pairs with the label 1, because a sound maker opens a document with B, or draws A's own document, now and then by chance. For the lengths, compare with the pairs of label 0: are the same lengths there?
""",
    mistakes="""
One B that opens a document is no mistake, because it comes by chance too. Ask whether every B of a NotNext does.
    all(b[0][1] == 0 for _, b in others) -> any(b[0][1] == 0 for _, b in others)
One B of A's own document is no mistake in a maker that draws from the whole corpus. Ask whether every B of a NotNext comes from A's document.
    all(b[0][0] == a[0][0] for a, b in others) -> any(b[0][0] == a[0][0] for a, b in others)
The test of the labels is missing, or it comes too late. In a pair with the label 0, B must follow A. Ask that first, because exchanged labels look like another mistake too.
    if not all(follows(a, b) for a, b in nexts): -> if False:
You take 1 for IsNext. The label 0 is IsNext, 1 is NotNext.
    label == 0] -> label == 1 ] ; label == 1] -> label == 0 ]
The test for A's own document is missing.
    if all(b[0][0] == a[0][0] for a, b in others): -> if False:
The test of the opening is missing, or it uses pairs of both labels: ask whether every B with the label 1 opens a document.
    if all(b[0][1] == 0 for _, b in others): -> if False:
    for _, b in others): -> for _, b in others + nexts):
The test of the lengths is missing, or it looks at A. Compare the numbers of sentences of B under both labels.
    if {len(b) for _, b in nexts} != {len(b) for _, b in others}: -> if False:
    {len(b) for _, b in nexts} != {len(b) for _, b in others} -> {len(a) for a, _ in nexts} != {len(a) for a, _ in others}
You ask whether B is longer in a NotNext. A shorter one gives the label away too.
    {len(b) for _, b in nexts} != {len(b) for _, b in others} -> max(len(b) for _, b in others) > max(len(b) for _, b in nexts)
A B that always has the same length is a mistake only if the label depends on the length. With chunks of 2 sentences, every B has one sentence. Compare the lengths under both labels.
    {len(b) for _, b in nexts} != {len(b) for _, b in others} -> len({len(b) for _, b in others}) == 1
If there is no mistake, return "none".
    return "none" -> return None || return ""
""",
)
def name_the_mistake(make):
    def follows(a, b):
        return b[0] == (a[-1][0], a[-1][1] + 1)  #: whether B begins with the sentence after A's last

    pairs = make(np.random.default_rng(0))  #: the maker's pairs with labels, from one call
    nexts = [(a, b) for a, b, label in pairs if label == 0]  #: every A and B of an IsNext, label 0
    others = [(a, b) for a, b, label in pairs if label == 1]  #: every A and B of a NotNext, label 1
    if not all(follows(a, b) for a, b in nexts):
        return "label"
    if all(b[0][0] == a[0][0] for a, b in others):
        return "document"
    if all(b[0][1] == 0 for _, b in others):
        return "opening"
    if {len(b) for _, b in nexts} != {len(b) for _, b in others}:
        return "length"
    return "none"


# --- pairs_needed ----------------------------------------------------------------------------------------


def _needed_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "a share of 0.43", 0.43, 1.96, 1.28
    yield "a share of 0.34", 0.34, 1.96, 1.28
    yield "a share of 0.49", 0.49, 1.96, 1.28
    yield "a share above one half", 0.6, 1.96, 0.84
    yield "a power of one half", 0.45, 1.96, 0.0
    yield "a strict test", float(rng.uniform(0.1, 0.3)), 3.29, 1.64


@exercise(
    difficulty=2,
    minutes=20,
    cases=_needed_cases,
    hints="""
The share of n tosses of a fair coin has the mean 1/2 and the standard deviation sqrt(1/2 · 1/2 / n). The test rejects if the measured share is z_test of these away from 1/2.

If the true share is q, the measured share has the mean q and the standard deviation sqrt(q (1 - q) / n). For the wanted power the limit of the test must be z_power of *these* away from q.

The two distances add up to |1/2 - q|: z_test · 0.5 / sqrt(n) + z_power · sqrt(q (1 - q)) / sqrt(n) = |1/2 - q|. Solve for n and round up.
""",
    mistakes="""
You leave out the power. Then the test finds the difference only half of the time.
    + z_power * math.sqrt(share * (1 - share)) ->
You leave out the limit of the test: z_test standard deviations of the fair coin.
    z_test * 0.5 + ->
Under the other share the standard deviation is sqrt(q (1 - q)) and not 1/2.
    math.sqrt(share * (1 - share)) -> 0.5
Under the fair coin the standard deviation is 1/2.
    z_test * 0.5 -> z_test * math.sqrt(share * (1 - share))
    z_test * 0.5 -> z_test * math.sqrt(share * (1 - share)) ; z_power * math.sqrt(share * (1 - share)) -> z_power * 0.5
That is a variance, not a standard deviation. Take its root.
    math.sqrt(share * (1 - share)) -> share * (1 - share)
    z_test * 0.5 -> z_test * 0.25
    z_test * 0.5 -> z_test * 0.25 ; math.sqrt(share * (1 - share)) -> share * (1 - share)
The square is missing. The deviations fall with the root of n, so n grows with the square.
    (wanted / distance) ** 2 -> wanted / distance
    (wanted / distance) ** 2 -> wanted**2 / distance
The two distances add up. You add their squares.
    z_test * 0.5 + z_power * math.sqrt(share * (1 - share)) -> math.hypot(z_test * 0.5, z_power * math.sqrt(share * (1 - share)))
The two distances add up, because the limit of the test lies between 1/2 and the share.
    z_test * 0.5 + z_power -> z_test * 0.5 - z_power
Round up: a fraction of a pair does not exist, and one pair fewer is too few.
    math.ceil((wanted / distance) ** 2) -> (wanted / distance) ** 2 || math.floor((wanted / distance) ** 2) || round((wanted / distance) ** 2)
""",
)
def pairs_needed(share, z_test, z_power):
    wanted = z_test * 0.5 + z_power * math.sqrt(share * (1 - share))  #: both distances' sum, times root n
    distance = abs(0.5 - share)  #: the distance of the share from 1/2
    return math.ceil((wanted / distance) ** 2)
