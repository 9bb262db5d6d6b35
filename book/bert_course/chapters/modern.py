"""BERT's encoder and what came after it, one change at a time, on stories whose best possible loss is known: `modern`.

An encoder is put together from parts, as a `Recipe` names them; a change is another part in one place. All are judged
alike: by one hidden word of a held-out story (`hidden_words`), and by fine-tuning on the task *holder*.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bert_course.common.fit import fine_tune
from bert_course.common.graph import product_flops
from bert_course.common.light_stories import CHOSEN, LENGTHS, batches, pretrain, small_config, stories
from bert_course.common.rotary import rotated
from bert_course.common.story_tasks import accuracy, holder_examples
from minigrad import backend, nn, ops, random
from minigrad.bert.config import IGNORED, BertConfig
from minigrad.bert.data import PretrainingData
from minigrad.bert.heads import BertPooler, BertPredictionHeadTransform, BertPreTrainingHeads
from minigrad.bert.model import BertPreTrainingOutput
from minigrad.bert.tasks import SequenceClassifierOutput
from minigrad.nn import Parameter
from minigrad.nn.initial import constant, truncated_normal
from minigrad.tensor import Array, Tensor
from minigrad.training.epochs import Batch

TEXTS = {"light": 4, "long": 12}  # sentences of a story
WARMUP_SHARE = 0.1  # of the steps
NEAR = 4  # tokens to either side that a local layer sees
FAR = -1e9  # is added to the scores of the others


# --- The parts -------------------------------------------------------------------------------------------


class LayerNorm(nn.Module):
    """BERT's: mean 0 and variance 1 over the features, then gain and bias."""

    def __init__(self, config: BertConfig, bias: bool) -> None:
        self.weight = Parameter(constant((config.hidden_size,), 1.0))
        self.bias = Parameter(constant((config.hidden_size,), 0.0)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x (…, H) -> (…, H)."""
        bias = self.weight.detach() * 0 if self.bias is None else self.bias
        return ops.layer_norm(x, self.weight, bias)


class RMSNorm(nn.Module):
    """Root mean square 1 over the features, then a gain: no mean, no bias (Zhang & Sennrich 2019, equation 4)."""

    def __init__(self, config: BertConfig, bias: bool) -> None:
        self.weight = Parameter(constant((config.hidden_size,), 1.0))

    def forward(self, x: Tensor) -> Tensor:
        """x (…, H) -> (…, H)."""
        squares = (x * x).mean(axis=-1, keepdims=True)  # (…, 1)
        return x * (squares + 1e-12) ** -0.5 * self.weight


class Attention(nn.Module):
    """BERT's: heads side by side over all tokens.

    number: the layer's, from 0. A change says what happens to queries and keys, and what is added to the scores.
    """

    def __init__(self, config: BertConfig, bias: bool, number: int) -> None:
        size, std = config.hidden_size, config.initializer_range
        self.heads, self.number = config.num_attention_heads, number
        self.query, self.key, self.value, self.dense = (nn.Linear(size, size, bias, std) for _ in range(4))

    def placed(self, x: Tensor) -> Tensor:
        """Queries or keys (B, A, T, d_k) with their positions."""
        return x

    def added(self, length: int) -> np.ndarray | None:
        """What is added to the scores, (A, T, T) or (T, T)."""
        return None

    def forward(self, x: Tensor, mask: np.ndarray) -> Tensor:
        """x (B, T, H), mask (B, 1, 1, T) -> (B, T, H)."""
        B, T, H = x.shape
        q, k, v = (
            part(x).reshape(B, T, self.heads, H // self.heads).permute(0, 2, 1, 3)  # (B, A, T, d_k)
            for part in (self.query, self.key, self.value)
        )
        added = self.added(T)
        scores = mask if added is None else mask + added  # (B, A, T, T)
        z = ops.scaled_dot_product_attention(
            self.placed(q), self.placed(k), v, backend.of(x.data).asarray(scores, dtype=x.dtype)
        )
        return self.dense(z.permute(0, 2, 1, 3).reshape(B, T, H))


class Rotary(Attention):
    """Queries and keys are rotated by their position (Su et al. 2021)."""

    def placed(self, x: Tensor) -> Tensor:
        """(B, A, T, d_k), rotated."""
        return rotated(x)


def slopes(heads: int) -> np.ndarray:
    """ALiBi's slope of each head, (A,): 2^(-8/A), its square, … 2^-8 (Press et al. 2022, section 3)."""
    return 2.0 ** (-8 * np.arange(1, heads + 1) / heads)


def distances(length: int) -> np.ndarray:
    """|i − j| of two tokens, (T, T)."""
    place = np.arange(length)
    return np.abs(place - place[:, None])


class ALiBi(Attention):
    """Each head takes its slope times the distance off the scores; the same to both sides, as in an encoder."""

    def added(self, length: int) -> np.ndarray:
        """(A, T, T)."""
        slope = slopes(self.heads)[:, None, None]  # (A, 1, 1)
        return -slope * distances(length)


class Local(Attention):
    """Every other layer, from the first on, sees NEAR tokens to either side and no others."""

    def added(self, length: int) -> np.ndarray | None:
        """(T, T), or None in the layers that see all."""
        near_alone = np.where(distances(length) > NEAR, FAR, 0.0)
        return None if self.number % 2 else near_alone


class RotaryLocal(Rotary, Local):
    """Both."""


class FeedForward(nn.Module):
    """BERT's: H -> 4 H, GELU, 4 H -> H."""

    def __init__(self, config: BertConfig, bias: bool) -> None:
        size, inner, std = config.hidden_size, config.intermediate_size, config.initializer_range
        self.intermediate = nn.Linear(size, inner, bias, std)
        self.output = nn.Linear(inner, size, bias, std)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, H) -> (B, T, H)."""
        inner = ops.gelu(self.intermediate(x))
        return self.output(inner)


class GeGLU(nn.Module):
    """A gate with GELU on each inner feature; ⅔ as many of them, as a third matrix is there (Shazeer 2020)."""

    def __init__(self, config: BertConfig, bias: bool) -> None:
        size, inner, std = config.hidden_size, config.intermediate_size * 2 // 3, config.initializer_range
        self.gate, self.intermediate = (nn.Linear(size, inner, bias, std) for _ in range(2))
        self.output = nn.Linear(inner, size, bias, std)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, H) -> (B, T, H)."""
        inner = ops.gelu(self.gate(x)) * self.intermediate(x)
        return self.output(inner)


class PostNorm(nn.Module):
    """BERT's layer: the sum is normalised."""

    ends_normalised = True

    def __init__(self, config: BertConfig, recipe: Recipe, number: int) -> None:
        self.attention = recipe.attention(config, recipe.bias, number)
        self.attention_LayerNorm = recipe.norm(config, recipe.bias)
        self.feed_forward = recipe.feed_forward(config, recipe.bias)
        self.output_LayerNorm = recipe.norm(config, recipe.bias)

    def forward(self, x: Tensor, mask: np.ndarray) -> Tensor:
        """x (B, T, H), mask (B, 1, 1, T) -> (B, T, H)."""
        x = self.attention_LayerNorm(x + self.attention(x, mask))
        return self.output_LayerNorm(x + self.feed_forward(x))


class PreNorm(PostNorm):
    """What goes into each half is normalised, and the sum is not (Xiong et al. 2020)."""

    ends_normalised = False

    def forward(self, x: Tensor, mask: np.ndarray) -> Tensor:
        """x (B, T, H), mask (B, 1, 1, T) -> (B, T, H)."""
        x = x + self.attention(self.attention_LayerNorm(x), mask)
        return x + self.feed_forward(self.output_LayerNorm(x))


# --- The recipes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """What an encoder is made of and what it must guess; BERT's where nothing else is said.

    positions, segments: whether there is a table of them. pairs: whether next-sentence prediction is a task. chosen:
    the share of the tokens that it must guess. detects: it is asked of each token whether it was replaced, instead.
    """

    layer: type[PostNorm] = PostNorm
    norm: Callable[[BertConfig, bool], nn.Module] = LayerNorm
    attention: type[Attention] = Attention
    feed_forward: Callable[[BertConfig, bool], nn.Module] = FeedForward
    bias: bool = True
    positions: bool = True
    segments: bool = True
    pairs: bool = True
    chosen: float = CHOSEN
    detects: bool = False


RECIPES = {
    "BERT": Recipe(),
    "pre-LN": Recipe(layer=PreNorm),
    "RMSNorm": Recipe(norm=RMSNorm),
    "no biases": Recipe(bias=False),
    "GeGLU": Recipe(feed_forward=GeGLU),
    "rotary": Recipe(attention=Rotary, positions=False),
    "rotary and a table": Recipe(attention=Rotary),
    "ALiBi": Recipe(attention=ALiBi, positions=False),
    "local attention": Recipe(attention=Local),
    "30 % hidden": Recipe(chosen=0.3),
    "no NSP": Recipe(pairs=False, segments=False),
    "replaced tokens": Recipe(detects=True),
    "all together": Recipe(
        PreNorm, RMSNorm, RotaryLocal, GeGLU, False, positions=False, segments=False, pairs=False, chosen=0.3
    ),
}


# --- The models ------------------------------------------------------------------------------------------


class Encoder(nn.Module):
    """Embeddings and layers as a recipe has them; after layers that leave their sum as it is, one more norm."""

    def __init__(self, config: BertConfig, recipe: Recipe) -> None:
        size, std = config.hidden_size, config.initializer_range
        self.config, self.recipe = config, recipe
        self.words: Any = nn.Embedding(config.vocab_size, size, std)
        self.positions = nn.Embedding(config.max_position_embeddings, size, std) if recipe.positions else None
        self.segments = nn.Embedding(2, size, std) if recipe.segments else None
        self.LayerNorm = recipe.norm(config, recipe.bias)
        layers = range(config.num_hidden_layers)
        self.layers = nn.ModuleList(recipe.layer(config, recipe, number) for number in layers)
        self.last_LayerNorm = None if recipe.layer.ends_normalised else recipe.norm(config, recipe.bias)

    def forward(self, input_ids: Array, attention_mask: Array, token_type_ids: Array) -> Tensor:
        """All (B, T) -> (B, T, H)."""
        x = self.words(input_ids)  # (B, T, H)
        if self.positions is not None:
            x = x + self.positions.weight[: input_ids.shape[1]]
        if self.segments is not None:
            x = x + self.segments(token_type_ids)
        x = self.LayerNorm(x)
        mask = np.where(attention_mask, 0.0, FAR)[:, None, None, :]  # (B, 1, 1, T)
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.last_LayerNorm is None else self.last_LayerNorm(x)


def _chosen_rows(x: Tensor, labels: Array) -> tuple[Tensor, Array]:
    """Of the vectors (B, T, H) those with a label, (n, H), and their labels (n,)."""
    rows = np.flatnonzero(labels != IGNORED)
    return x.reshape(-1, x.shape[-1])[rows], labels.reshape(-1)[rows]


class Model(nn.Module):
    """An encoder with BERT's heads: a guess for each token, and whether B follows A."""

    def __init__(self, config: BertConfig, recipe: Recipe) -> None:
        self.config = config
        self.encoder = Encoder(config, recipe)
        self.pooler = BertPooler(config)
        self.cls = BertPreTrainingHeads(config)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array,
        token_type_ids: Array,
        labels: Array | None = None,
        next_sentence_label: Array | None = None,
    ) -> BertPreTrainingOutput:
        """As `BertForPreTraining`: logits (B, T, V), or with labels (n, V) of the n chosen tokens, and the losses."""
        x = self.encoder(input_ids, attention_mask, token_type_ids)  # (B, T, H)
        pooled = self.pooler(x[:, 0])  # (B, H)
        targets = None
        if labels is not None:
            x, targets = _chosen_rows(x, labels)
        logits, next_logits = self.cls(x, pooled, self.encoder.words.weight)
        mlm = None if targets is None else ops.cross_entropy(logits, targets)
        nsp = None if next_sentence_label is None else ops.cross_entropy(next_logits, next_sentence_label)
        loss = mlm + nsp if mlm is not None and nsp is not None else mlm
        return BertPreTrainingOutput(logits, next_logits, loss, mlm, nsp)


class Detection(nn.Module):
    """A small BERT guesses the hidden tokens, and the model says of each token whether it is such a guess.

    ELECTRA (Clark et al. 2020): a guess that is right counts as not replaced, the detector's loss has WEIGHT, and what
    was guessed sends no gradient back. The small one has half the width. `model` is what is kept; `shares` has, for
    each step, the share of the hidden tokens that were replaced.
    """

    WEIGHT = 50.0

    def __init__(self, config: BertConfig, recipe: Recipe, seed: int) -> None:
        half = config.hidden_size // 2
        small = replace(
            config,
            hidden_size=half,
            intermediate_size=4 * half,
            num_attention_heads=config.num_attention_heads // 2,
        )
        self.model = Model(config, recipe)
        self.generator = Model(small, replace(recipe, pairs=False))
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, std=config.initializer_range)
        self.classifier = nn.Linear(config.hidden_size, 2, std=config.initializer_range)
        self.rng = np.random.default_rng([seed, 5])
        self.shares: list[float] = []

    def replaced(self, batch: Batch, logits: Tensor) -> tuple[Array, Array]:
        """The tokens with the guesses in place of the chosen ones, and of each whether it was replaced, both (B, T)."""
        scores = backend.to_numpy(logits.data)  # (n, V)
        noise = self.rng.gumbel(size=scores.shape)
        guessed = (scores + noise).argmax(axis=-1)  # a draw
        chosen = batch["labels"] != IGNORED
        read = batch["input_ids"]
        true = np.where(chosen, batch["labels"], read)
        ids = true.copy()
        ids[chosen] = guessed
        return ids, ids != true

    def loss(self, batch: Batch) -> Tensor:
        """The generator's on the hidden tokens, the detector's on all, and that of the pairs: in nats."""
        guess = self.generator(**{name: batch[name] for name in batch if name != "next_sentence_label"})
        assert guess.mlm_loss is not None
        ids, was_replaced = self.replaced(batch, guess.prediction_logits)
        self.shares.append(float(was_replaced[batch["labels"] != IGNORED].mean()))
        x = self.model.encoder(ids, batch["attention_mask"], batch["token_type_ids"])  # (B, T, H)
        labels = np.where(batch["attention_mask"] == 1, was_replaced, IGNORED)
        rows, targets = _chosen_rows(x, labels)
        found = ops.cross_entropy(self.classifier(ops.gelu(self.dense(rows))), targets)
        next_logits = self.model.cls.seq_relationship(self.model.pooler(x[:, 0]))
        return (
            guess.mlm_loss
            + found * self.WEIGHT
            + ops.cross_entropy(next_logits, batch["next_sentence_label"])
        )


class _NewMask(nn.Module):
    """A table of words in which [MASK] has a new vector, the only one that is trained."""

    def __init__(self, words: nn.Embedding, mask: int, std: float) -> None:
        self.words, self.mask = words, mask
        self.new = Parameter(truncated_normal((1, words.weight.shape[1]), std))

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> (B, T, H)."""
        is_mask = np.equal(ids, self.mask)[..., None]  # (B, T, 1)
        return ops.where(is_mask, self.new, self.words(ids))


class Probe(nn.Module):
    """A frozen encoder with a new head that guesses hidden words, and a new vector for [MASK].

    So a model that never saw [MASK] and has no such head can be judged like the others.
    """

    def __init__(self, encoder: Encoder, mask: int) -> None:
        self.config = config = encoder.config
        for parameter in encoder.parameters():
            parameter.requires_grad = False
        self.encoder = encoder
        encoder.words = _NewMask(encoder.words, mask, config.initializer_range)
        self.transform = BertPredictionHeadTransform(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, std=config.initializer_range)

    def forward(
        self, input_ids: Array, attention_mask: Array, token_type_ids: Array, labels: Array | None = None
    ) -> BertPreTrainingOutput:
        """Logits (B, T, V), or with labels (n, V) and their loss."""
        x = self.encoder(input_ids, attention_mask, token_type_ids)
        targets = None
        if labels is not None:
            x, targets = _chosen_rows(x, labels)
        logits = self.decoder(self.transform(x))
        loss = None if targets is None else ops.cross_entropy(logits, targets)
        return BertPreTrainingOutput(logits, logits, loss, loss)


class Classifier(nn.Module):
    """An encoder and its pooler with a new head of two classes."""

    def __init__(self, model: Model) -> None:
        self.config = model.config
        self.encoder, self.pooler = model.encoder, model.pooler
        self.classifier = nn.Linear(model.config.hidden_size, 2, std=model.config.initializer_range)

    def forward(
        self, input_ids: Array, attention_mask: Array, token_type_ids: Array, labels: Array | None = None
    ) -> SequenceClassifierOutput:
        """Logits (B, 2), and with labels (B,) their loss."""
        x = self.encoder(input_ids, attention_mask, token_type_ids)
        logits = self.classifier(self.pooler(x[:, 0]))
        return SequenceClassifierOutput(logits, None if labels is None else ops.cross_entropy(logits, labels))


# --- Training --------------------------------------------------------------------------------------------


def config_of(text: str) -> BertConfig:
    """The reduced model with as many positions as a pair of this text has tokens at most."""
    return small_config(max_position_embeddings=LENGTHS[TEXTS[text]])


def batches_of(text: str, seed: int, chosen: float = CHOSEN) -> PretrainingData:
    """Endless batches of fresh pairs."""
    sentences = TEXTS[text]
    return batches(stories(sentences), seed, chosen, LENGTHS[sentences])


def made(change: str, text: str, seed: int) -> tuple[Model, nn.Module, Callable[[Batch], Tensor | None]]:
    """A new model of a recipe; what is trained, in which it is; and the loss of a batch."""
    recipe = RECIPES[change]
    random.manual_seed(seed)
    if recipe.detects:
        detection = Detection(config_of(text), recipe, seed)
        return detection.model, detection, detection.loss
    model = Model(config_of(text), recipe)
    return model, model, _loss_of(model, recipe.pairs)


def train(
    change: str, text: str, seed: int, rate: float, steps: int, points: Sequence[int]
) -> Iterator[tuple[int, Model, nn.Module]]:
    """Train a recipe on fresh pairs; gives at each of `points` the step, the model and what it is trained in."""
    model, trained, loss = made(change, text, seed)
    data = batches_of(text, seed, RECIPES[change].chosen)
    for step in pretrain(trained, loss, data, rate, steps, round(WARMUP_SHARE * steps), points):
        yield step, model, trained


def step_flops(change: str, text: str) -> int:
    """The FLOPs of a training step's matrix products, of which two thirds are backward."""
    _, _, loss = made(change, text, seed=0)
    output = loss(first_batch(text, RECIPES[change].chosen))
    assert output is not None
    return 3 * product_flops(output)


@functools.cache  # an epoch of stories is drawn for it
def first_batch(text: str, chosen: float = CHOSEN) -> Batch:
    """The first batch of a text, with this share of its tokens chosen."""
    return batches_of(text, 0, chosen).next_batch()


def _loss_of(model: nn.Module, pairs: bool) -> Callable[[Batch], Tensor | None]:
    """The loss of both tasks, or of the hidden words alone."""

    def loss(batch: Batch) -> Tensor | None:
        if not pairs:
            batch = {name: values for name, values in batch.items() if name != "next_sentence_label"}
        return model(**batch).loss

    return loss


def probe(model: Model, text: str, seed: int, steps: int, rate: float = 1e-3) -> Probe:
    """A new head on the frozen encoder, trained for so many steps on the same text; the model is used up."""
    random.manual_seed(seed)
    judge = Probe(model.encoder, stories().tokenizer.mask_token_id)
    data = batches_of(text, seed + 1000)
    loss = _loss_of(judge, pairs=False)
    for _ in pretrain(judge, loss, data, rate, steps, round(WARMUP_SHARE * steps), ()):
        pass
    return judge


def holder_accuracy(model: Model, rate: float, labels: int, steps: int, seed: int, held_out: int) -> float:
    """Fine-tune a copy of the model on *holder* with so many labels; the share of right answers on 400 others."""
    random.manual_seed(seed)
    copy = Model(model.config, model.encoder.recipe)
    copy.load_state_dict(model.state_dict())
    classifier = Classifier(copy)
    fine_tune(classifier, holder_examples(labels, seed), rate, steps, seed)
    return accuracy(classifier, holder_examples(400, held_out))
