"""Chapter `pretraining`'s last exercise: the learner's BERT, on the learner's engine, trained by the learner's step."""

from __future__ import annotations

import functools
import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from bert_course.common.figures import IN_A_PAGE
from bert_course.common.fit import descend
from bert_course.common.light_stories import BATCH, DECAY, LENGTH, small_config, stories
from bert_course.common.live_curve import LiveCurve
from bert_course.one_file import OwnFile, model_of
from minigrad import optim, random
from minigrad.bert.data import PretrainingData
from minigrad.bert.metrics import unigram_entropy
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.training import parameter_groups
from minigrad.files import write_atomic
from minigrad.stories.floors import Scorer, mlm_floor
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import draw_pairs

STEPS = 60 if IN_A_PAGE else 300  # Python in a page has one core, and no fast products
PEAK = 2e-3
KEEP_EVERY = 100  # steps
HELD_OUT = 1  # the seed of stories that no training saw
WIDTH = 64


def library(seed: int = 0) -> BertForPreTraining:
    """The library's model of this size, initialised, without dropout."""
    random.manual_seed(seed)
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertForPreTraining(small_config(hidden_size=WIDTH, intermediate_size=4 * WIDTH, **no_dropout))


def batches(seed: int) -> PretrainingData:
    """The light stories, as the library masks them."""
    text = stories()
    return PretrainingData(text, text.tokenizer, BATCH, LENGTH, seed)


def of_weights(own: ModuleType, model: BertForPreTraining) -> dict[str, Any]:
    """The model of a learner's file with the weights of a library's."""
    config = model.config
    return model_of(model.state_dict(), config.num_attention_heads, config.layer_norm_eps, own)


class Training(LiveCurve):
    """The model of a learner's file, trained on the light stories: its curve while it runs, and what it has learned.

    Stopped, it keeps what it has, and `run` goes on. keep: a file that gets all of it every 100 steps and at the end;
    where it is there, the training goes on from it, to the last digit as if it had never stopped. Raises ValueError
    where that file is damaged, or of another model, number of steps or seed. pairs: the loss of the pairs at each step,
    as `losses` of words.
    """

    def __init__(
        self, own: OwnFile, steps: int = STEPS, seed: int = 0, keep: str | Path | None = None
    ) -> None:
        self.own, self.pairs, self.keep = own.module, list[float](), Path(keep) if keep else None
        self.settings = [steps, seed]
        self.model = of_weights(self.own, library(seed))
        super().__init__(self._steps(steps, seed), "loss of hidden words (nats)", floor_of_words())
        if self.keep and self.keep.exists():
            self._take_up(self.keep)

    def _steps(self, steps: int, seed: int) -> Iterator[float]:
        data = batches(seed)
        for _ in self.pairs:  # whose batches it has read
            data.next_batch()
        for words, pairs in self.own.train(self.model, data.next_batch, steps, PEAK):
            self.pairs.append(pairs)
            if self.keep and (len(self.pairs) % KEEP_EVERY == 0 or len(self.pairs) == steps):
                file = io.BytesIO()
                losses: dict[str, Any] = {"words": [*self.losses, words], "pairs": self.pairs}
                np.savez(file, settings=self.settings, **losses, **self._arrays())
                write_atomic(self.keep, file.getvalue())
            yield words

    def _arrays(self) -> dict[str, Any]:
        """The parameters and what AdamW keeps of each, by name."""
        parameters = enumerate(self.own.parameters(self.model))
        means = enumerate(self.model["means"])
        found = {f"parameter {i}": p.data for i, p in parameters}
        return found | {f"mean {i} {j}": mean for i, both in means for j, mean in enumerate(both)}

    def _take_up(self, path: Path) -> None:
        try:
            with np.load(path) as file:
                kept = dict(file)
            settings, *losses = (kept.pop(name).tolist() for name in ("settings", "words", "pairs"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{path} is no training that was kept: {type(error).__name__}: {error}"
            ) from error
        shapes, expected = ({name: x.shape for name, x in one.items()} for one in (kept, self._arrays()))
        if shapes != expected or settings != self.settings:
            what = "another model" if shapes != expected else "[steps, seed] {}, and not {}"
            what = what.format(settings, self.settings)
            raise ValueError(f"{path} keeps {what}; give this training a file of its own")
        self.losses, self.pairs[:] = losses
        self.model["t"] = len(self.pairs)
        for i, p in enumerate(self.own.parameters(self.model)):
            p.data = kept[f"parameter {i}"]
            self.model["means"][i][:] = kept[f"mean {i} 0"], kept[f"mean {i} 1"]

    def held_out(self, count: int = 4) -> tuple[float, float]:
        """On batches of stories that no training saw: the mean loss of hidden words, in nats, and the share of pairs
        that are judged rightly."""
        data, losses, right = batches(HELD_OUT), [], []
        W, b = self.model["seq_relationship"]
        for _ in range(count):
            batch = data.next_batch()
            losses.append(float(self.own.losses(batch, self.model)[0].data))
            _, pooled = self.own.bert(batch, self.model)
            right.append((pooled @ W + b).data.argmax(axis=1) == batch["next_sentence_label"])
        return float(np.mean(losses)), float(np.mean(right))

    def fill(self, text: str, count: int = 4) -> str:
        """What the model puts into the [MASK] of a text, with probabilities."""
        tokenizer = stories().tokenizer
        ids = {tokenizer.id_to_token(i): i for i in range(tokenizer.vocab_size)}
        (found,) = self.own.fill(self.own.pieces_of(text, ids), self.model, ids, count)
        return ", ".join(f"{piece} {p:.2f}" for piece, p in found)


def word_frequencies() -> float:
    """What somebody pays for a hidden word who knows only how often each word occurs, in nats."""
    return unigram_entropy(stories().tokens())


@functools.cache
def floor_of_words(pairs: int = 12) -> float:
    """What no model can fall below on held-out stories, one word hidden at a time, in nats."""
    setting = SETTINGS["light"]
    return mlm_floor(draw_pairs(setting, pairs, HELD_OUT), Scorer(setting))["all"].nats


def beside_the_library(own: OwnFile, steps: int = 50, seed: int = 0) -> tuple[float, float]:
    """The largest difference between the losses of both, step by step, and how many times as long the learner's take.

    From the same weights, on the same batches, with the same rates.
    """
    theirs = library(seed)
    ours = of_weights(own.module, theirs)
    optimizer = optim.AdamW(parameter_groups(theirs, DECAY), lr=PEAK, eps=1e-6)
    schedule = optim.LinearWarmupDecay(optimizer, round(steps / 10), steps)
    data, again = batches(seed), batches(seed)
    theirs.train()
    taken, apart = [0.0, 0.0], 0.0
    for pair in own.module.train(ours, data.next_batch, steps, PEAK):
        start = time.process_time()
        out = theirs(**again.next_batch())
        assert out.mlm_loss is not None
        assert out.nsp_loss is not None
        descend(theirs, out.loss, optimizer, schedule)
        taken[1] += time.process_time() - start
        expected = out.mlm_loss.item(), out.nsp_loss.item()
        apart = max(apart, *(abs(one - other) for one, other in zip(pair, expected, strict=True)))
    start = time.process_time()
    for _ in own.module.train(of_weights(own.module, library(seed)), batches(seed).next_batch, 10, PEAK):
        pass
    taken[0] = (time.process_time() - start) * steps / 10
    return apart, taken[0] / taken[1]
