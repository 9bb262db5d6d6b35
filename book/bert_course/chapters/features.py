"""What `features` shows: tags of words in stories, the layers of a frozen encoder, and what reads tags from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.fit import descend, fine_tune
from bert_course.common.varied_stories import SETTING, Texts, arcs_of, as_drawn, read, story_model
from bert_course.stored import stored
from minigrad import Tensor, backend, nn, no_grad, ops, optim, random
from minigrad.bert import from_pretrained
from minigrad.bert.attention import additive_mask
from minigrad.bert.config import IGNORED, label_names
from minigrad.bert.features import Features
from minigrad.bert.tasks import BertForTokenClassification
from minigrad.bert.training import parameter_groups
from minigrad.nn.module import Parameter
from minigrad.stories.grammar import Story, Word

HIDDEN = 32  # of the LSTM, in each direction
BATCH, DECAY = 32, 0.01
SEARCH_SEED = 100  # of the stored runs that look for a rate; those that are compared have lower ones
KINDS = sorted(SETTING.lexicon.kinds)

# --- Tags ------------------------------------------------------------------------------------------------

PEOPLE = {"first": 0, "second": 1}


def words_of(story: Story) -> list[Word]:
    """All words of a story."""
    return [word for sentence in story.sentences for word in sentence]


def _kind(story: Story) -> list[int]:
    """Of it, them and which: of which of six kinds the thing is."""
    assert story.facts.kind is not None
    kind = KINDS.index(story.facts.kind)
    return [kind if word.tag == "PRON" and word.entity == "thing" else IGNORED for word in words_of(story)]


def _holder(story: Story) -> list[int]:
    """Of each name and pronoun of a person: whether this person has the thing at the end of the sentence."""
    return [
        int(PEOPLE[word.entity] == holder) if holder is not None and word.entity in PEOPLE else IGNORED
        for sentence, holder in zip(story.sentences, story.holders, strict=True)
        for word in sentence
    ]


def _name(story: Story) -> list[int]:
    """Of each word: a man's name (0), a woman's (1), or another word (2)."""
    of = SETTING.lexicon
    return [0 if word.text in of.men else 1 if word.text in of.women else 2 for word in words_of(story)]


# name: the number of its classes, and the tags of a story's words
TAGS: dict[str, tuple[int, Callable[[Story], list[int]]]] = {
    "kind": (len(KINDS), _kind),
    "holder": (2, _holder),
    "name": (3, _name),
}


def tagged(texts: Texts, name: str) -> np.ndarray:
    """The tag of each token (S, L), IGNORED where there is none. name: of TAGS, or of PHENOMENA."""
    find = TAGS[name][1] if name in TAGS else PHENOMENA[name]
    found = np.full(texts.words.shape, IGNORED)
    for row, words, story in zip(found, texts.words, texts.stories, strict=True):
        row[words] = find(story)
    return found


# --- What a probe asks -----------------------------------------------------------------------------------

CLASSES = ("ADJ", "ADV", "CONJ", "DET", "NAME", "NOUN", "NUM", "PREP", "PRON", "STOP", "VERB")


def _word_class(story: Story) -> list[int]:
    return [CLASSES.index(word.tag) for word in words_of(story)]


def _next_class(story: Story) -> list[int]:
    return [*_word_class(story)[1:], IGNORED]


def _number(story: Story) -> list[int]:
    words = words_of(story)
    after = [*words[1:], words[-1]]
    return [
        int(bool(story.facts.many))
        if word.tag == "DET" and (later.entity == "thing" or later.slot == "age")
        else IGNORED
        for word, later in zip(words, after, strict=True)
    ]


def _subject(story: Story) -> list[int]:
    words = words_of(story)
    found = [IGNORED] * len(words)
    for verb, subject in arcs_of(story)["verb → subject"]:
        if words[subject].entity in PEOPLE:
            found[verb] = int(PEOPLE[words[subject].entity or ""] == story.facts.man)
    return found


def _who(story: Story) -> list[int]:
    return [
        PEOPLE[word.entity] if word.tag == "PRON" and word.entity in PEOPLE else IGNORED
        for word in words_of(story)
    ]


# name: the label of each word of a story, IGNORED where the probe does not ask
PHENOMENA: dict[str, Callable[[Story], list[int]]] = {
    "its word class": _word_class,
    "class of the next word": _next_class,
    "the: one or several": _number,
    "it: kind of the thing": _kind,
    "person: has it": _holder,
    "verb: its subject's gender": _subject,
    "he, she: first or second": _who,
}


# --- Layers ----------------------------------------------------------------------------------------------


def hidden_states(model: Any, texts: Texts, batch: int = 100) -> np.ndarray:
    """What goes into the first layer, and what comes out of each, (layers + 1, S, L, d_model)."""
    found = []
    for start in range(0, len(texts), batch):
        part = {key: array[start : start + batch] for key, array in texts.inputs.items()}
        with no_grad():
            states = model.bert(**part).hidden_states
        found.append(np.stack([backend.to_numpy(one.data) for one in states]))
    return np.concatenate(found, axis=1)


def one_hot(texts: Texts, vocabulary: int) -> np.ndarray:
    """Each token as a row with a single 1, (1, S, L, vocabulary)."""
    return np.eye(vocabulary, dtype=np.float32)[texts.inputs["input_ids"]][None]


def lengths_of(texts: Texts) -> np.ndarray:
    """How many tokens each story has, (S,)."""
    return texts.inputs["attention_mask"].sum(axis=1)


# name: the layers that it takes, and how they are joined; 0 is the embeddings
CHOICES: dict[str, tuple[list[int], str]] = {
    "embeddings": ([0], "concat"),
    "second-to-last": ([3], "concat"),
    "last": ([4], "concat"),
    "weighted sum, last two": ([3, 4], "weighted"),
    "concatenation, last two": ([3, 4], "concat"),
    "weighted sum, all four": ([1, 2, 3, 4], "weighted"),
    "sum, last two": ([3, 4], "sum"),
    "sum, all four": ([1, 2, 3, 4], "sum"),
}


class Tagger(nn.Module):
    """Joins layers (n, B, L, d) into one input, and reads a tag of each token from it: logits (B, L, classes).

    join: "concat", "sum" or "weighted" (softmax weights of s, times gamma). reader: "lstm" (two layers in both
    directions, and a linear map) or "linear" (the map without the LSTM).
    """

    def __init__(self, count: int, width: int, join: str, classes: int, reader: str = "lstm") -> None:
        self.join = join
        size = count * width if join == "concat" else width
        if join == "weighted":
            self.s = Parameter(np.zeros(count, np.float32))
            self.gamma = Parameter(np.ones(1, np.float32))
        self.lstm = nn.LSTM(size, HIDDEN, num_layers=2, bidirectional=True) if reader == "lstm" else None
        self.output = nn.Linear(2 * HIDDEN if reader == "lstm" else size, classes)

    def forward(self, layers: Tensor, lengths: Any) -> Tensor:
        """layers (n, B, L, d), lengths (B,) -> (B, L, classes)."""
        if self.join == "concat":
            x = ops.concat([layers[i] for i in range(layers.shape[0])], axis=-1)
        elif self.join == "sum":
            x = layers.sum(axis=0)
        else:
            weights = ops.softmax(self.s).reshape(-1, 1, 1, 1)
            x = (layers * weights).sum(axis=0) * self.gamma
        if self.lstm is not None:
            x, _ = self.lstm(x, lengths=lengths)
        return self.output(x)


def train(
    model: Any, layers: np.ndarray, lengths: np.ndarray, tags: np.ndarray, rate: float, steps: int, seed: int
) -> None:
    """AdamW with a warm-up and a linear fall, as chapter `finetuning` fine-tunes; batches of 32 stories.

    layers (n, S, L, d), lengths (S,), tags (S, L). No gradient goes into the layers.
    """
    rng = np.random.default_rng(seed)
    optimizer = optim.AdamW(parameter_groups(model, DECAY), lr=rate, eps=1e-6)
    schedule = optim.LinearWarmupDecay(optimizer, steps // 10, steps)
    order: list[int] = []
    model.train()
    for _ in range(steps):
        if not order:
            order = rng.permutation(len(tags)).tolist()
        rows, order = order[:BATCH], order[BATCH:]
        longest = lengths[rows].max()
        logits = model(Tensor(layers[:, rows, :longest]), lengths[rows])
        loss = ops.cross_entropy(logits, tags[rows, :longest], ignore_index=IGNORED)
        descend(model, loss, optimizer, schedule)
    model.eval()


def predict(model: Any, layers: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The tag with the largest logit for each token, (S, L)."""
    found = []
    for start in range(0, len(lengths), 200):
        with no_grad():
            logits = model(Tensor(layers[:, start : start + 200]), lengths[start : start + 200])
        found.append(logits.numpy().argmax(axis=-1))
    return np.concatenate(found)


def accuracy(guesses: np.ndarray, tags: np.ndarray) -> float:
    """The share of right tags among the tokens that have one."""
    asked = tags != IGNORED
    return float((guesses == tags)[asked].mean())


def fine_tuned_guesses(
    task: str, train_on: Texts, test: Texts, rate: float, steps: int, seed: int
) -> np.ndarray:
    """All weights of the stored model learn, with a linear head, as in `finetuning`; its tags of `test` (S, L)."""
    random.manual_seed(seed)
    model = from_pretrained(stored("varied"), BertForTokenClassification, label_names(TAGS[task][0])).model
    tags, examples = tagged(train_on, task), []
    for number, length in enumerate(lengths_of(train_on)):
        ids, segments = (
            train_on.inputs[key][number, :length].tolist() for key in ("input_ids", "token_type_ids")
        )
        examples.append(Features(ids, segments, {"labels": tags[number, :length].tolist()}))
    fine_tune(model, examples, rate, steps, seed)
    with no_grad():
        return model(**test.inputs).logits.numpy().argmax(axis=-1)


# --- The record ------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def stories_for(count: int, seed: int) -> tuple[Texts, np.ndarray, np.ndarray]:
    """Stories, their hidden states in the stored model, and their lengths."""
    texts = read(count, seed)
    return texts, hidden_states(story_model()[0], texts), lengths_of(texts)


@lru_cache(maxsize=4)
def untrained_states(count: int, seed: int) -> np.ndarray:
    """The hidden states of the same stories in a model before its first step."""
    return hidden_states(as_drawn(1), read(count, seed))


def inputs_of(what: str, count: int, seed: int) -> tuple[np.ndarray, str]:
    """The layers (n, S, L, d) that a choice or a control reads, and how they are joined."""
    if what == "one-hot words":
        texts = read(count, seed)
        return one_hot(texts, len(story_model()[1].vocab)), "concat"
    if what == "last, untrained":
        return untrained_states(count, seed)[[4]], "concat"
    layers, join = CHOICES[what]
    return stories_for(count, seed)[1][layers], join


def scores_of(
    record: dict[str, Any], task: str, what: str, reader: str = "lstm", size: int = 64
) -> list[float]:
    """The accuracies of the runs that are compared, one for each seed, in the order of the seeds."""
    return [
        run["accuracy"]
        for run in sorted(record["runs"], key=lambda run: run["seed"])
        if (run["task"], run["what"], run["reader"], run["labels"]) == (task, what, reader, size)
        and run["seed"] < SEARCH_SEED
    ]


# --- A vector exchanged ----------------------------------------------------------------------------------

ASKED = ("[CLS]", "the noun", "[MASK]", "the adjective", "the full stop")


@dataclass(frozen=True)
class HiddenVerbs:
    """Stories with a remark such as "the books of mary [MASK] ancient .", n in all.

    inputs: as the model reads them. many (n,): 1 where are is right, 0 where is is. places: for each of ASKED the place
    of that token, (n,). states: what goes into each layer and comes out of the last, each (n, L, d_model).
    """

    inputs: dict[str, np.ndarray]
    many: np.ndarray
    places: dict[str, np.ndarray]
    states: list[np.ndarray]

    def rows(self, layer: int, name: str) -> np.ndarray:
        """The rows of one token of each story after a layer, (n, d_model); layer 0 is the embeddings."""
        at = self.places[name]
        return self.states[layer][np.arange(len(at)), at]

    def margins(self, layer: int, name: str, rows: np.ndarray, some: slice) -> np.ndarray:
        """Some stories go on from a layer with other rows for one token: right logit minus wrong one at [MASK]."""
        model, tokenizer = story_model()
        many = self.many[some]
        stories = np.arange(len(many))
        x = self.states[layer][some].copy()
        x[stories, self.places[name][some]] = rows[some]
        with no_grad():
            state = Tensor(x)
            mask = additive_mask(self.inputs["attention_mask"][some], state)
            for one in model.bert.encoder.layer[layer:]:
                state = one(state, mask)
            at_mask = Tensor(state.numpy()[stories, self.places["[MASK]"][some]])
            words = model.bert.embeddings.word_embeddings.weight
            logits = model.cls.predictions(at_mask, words).numpy()
        are, is_ = (logits[:, tokenizer.token_to_id(word)] for word in ("are", "is"))
        return np.where(many == 1, are - is_, is_ - are)


def hide_verbs(count: int, seed: int) -> HiddenVerbs:
    """The remarks with is or are in so many stories, with that verb hidden."""
    model, tokenizer = story_model()
    texts = read(count, seed)
    found = []
    for number, (story, words) in enumerate(zip(texts.stories, texts.words, strict=True)):
        at, start = np.flatnonzero(words), sum(map(len, story.sentences[:-1]))
        remark = story.trees[-1]
        if remark.predicate is not None:
            many = int(bool(story.facts.many))
            verb = at[start + remark.at]
            found.append((number, many, 0, at[start + remark.subject.at], verb, verb + 1, at[-1]))
    stories, many, *places = np.array(found).T
    inputs = {key: array[stories].copy() for key, array in texts.inputs.items()}
    inputs["input_ids"][np.arange(len(stories)), places[2]] = tokenizer.mask_token_id
    with no_grad():
        states = [one.numpy() for one in model.bert(**inputs).hidden_states]
    return HiddenVerbs(inputs, many, dict(zip(ASKED, places, strict=True)), states)


# --- Pictures --------------------------------------------------------------------------------------------


def layers_figure(found: dict[str, list[float]]) -> Picture:
    """The accuracy of a probe, for each phenomenon of `found`, at the embeddings and after each layer."""
    looks = [
        ("first", "-"),
        ("second", "--"),
        ("third", ":"),
        ("value", "-."),
        ("weight", "-"),
        ("gradient", "--"),
    ]

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        ends = sorted(found, key=lambda name: found[name][-1])
        last = -1.0
        for (role, line), name in zip(looks, ends, strict=False):
            axes.plot(range(5), found[name], line, color=colours[role], marker="o", ms=3.5)
            last = max(found[name][-1], last + 0.055)
            axes.text(4.12, last, name, color=colours[role], fontsize=9, va="center")
        axes.set(xlim=(-0.1, 6.4), ylim=(0.1, 1.12), ylabel="accuracy of the probe", xlabel="after layer")
        axes.set_xticks(range(5), ["0", "1", "2", "3", "4"])

    lines = "; ".join(
        f"{name}: {', '.join(f'{one:.2f}' for one in values)}" for name, values in found.items()
    )
    return figure(
        plot, f"Accuracy of a linear probe at the embeddings and after layers 1 to 4. {lines}.", (5.4, 3.6)
    )
