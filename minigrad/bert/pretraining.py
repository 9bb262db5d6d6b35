"""Pre-training: masked language modelling and next-sentence prediction together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from minigrad import backend, random
from minigrad.bert.config import IGNORED, BertConfig
from minigrad.bert.data import (
    PairSource,
    PretrainingData,
    TokenDocument,
    encode_documents,
    held_out_batches,
    pack_chosen,
)
from minigrad.bert.info import require_memory
from minigrad.bert.metrics import brief, describe, evaluate, unigram_entropy
from minigrad.bert.model import BertForPreTraining, BertPreTrainingOutput
from minigrad.bert.predict import describe_fillings, fill_mask, fits
from minigrad.bert.settings import PretrainingArguments
from minigrad.bert.training import PRETRAINING, BertTraining, require_positions
from minigrad.distributed import Share, World
from minigrad.messages import LONGEST_LINE, shown
from minigrad.nn import Module
from minigrad.stories.stories import STORIES, Stories
from minigrad.tensor import Array, Tensor
from minigrad.text.corpus import Corpus, read_corpus
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import MASK, train_wordpiece
from minigrad.training.device_step import DeviceStep
from minigrad.training.epochs import Batch
from minigrad.training.folders import RunFolder
from minigrad.training.progress import Progress, counting
from minigrad.training.shares import shares_of

HELD_OUT = 0.05  # share of the documents


class PairShare(Share):
    """A share of a batch of sentence pairs.

    of_tokens, of_pairs: its weights in the means over the chosen tokens, and over the pairs. places: of b pairs with n
    chosen tokens, arrays have b rows or, in the last layer, b + n: [CLS] of each pair, then the chosen tokens.
    """

    def __init__(self, whole: Batch, number: int, count: int) -> None:
        super().__init__(whole, number, count)
        self.of_tokens = self.of_pairs = 1.0
        if count == 1:
            return
        chosen = whole["labels"] != IGNORED  # (B, T)
        self.of_tokens, self.of_pairs = self.weight(chosen), len(self.rows) / len(chosen)
        before, own = int(chosen[: self.rows.start].sum()), int(self.rows_of(chosen).sum())
        tokens = range(len(chosen) + before, len(chosen) + before + own)
        self.places[len(self.rows) + own] = [self.rows, tokens]

    def loss(self, output: BertPreTrainingOutput) -> Tensor:
        """The share's part of the loss of the whole batch, from what a model makes of `batch`."""
        assert output.mlm_loss is not None
        assert output.nsp_loss is not None
        return output.mlm_loss * self.of_tokens + output.nsp_loss * self.of_pairs


class Pretraining(BertTraining):
    """A run of pre-training: what `python -m minigrad.bert pretrain` runs.

    config: of the model to make. documents: training text as ids (`encode_documents`), or a PairSource. tokenizer:
    what made them. held_out: batches for the evaluation. output: the run's folder, which is locked until `run` ends,
    or the `with` that this is used in. corpus: a name or fingerprint of the text, so that a resumed run can tell
    whether it is the same. resume: go on from the newest checkpoint in `output`. held_out_share: of the text,
    for the evaluation of the model later. example: a text with a [MASK], whose likeliest fillings are
    reported every `eval_every` steps, if the model has positions for it; they change nothing in the run.
    cuda_graph: on a GPU, launch a step as a whole, once it has been recorded (`training.device_step`); the bits are the
    same. world, shares: as in Run. Shares give, but for rounding, what a whole batch gives: losses are weighted by
    each share's tokens and pairs, and dropout depends on the place in the whole batch.

    Raises what `require_fit` raises, before anything else; RunFolderError if another run is in `output`;
    CheckpointError if it holds a run and `resume` is false, if its newest checkpoint is damaged, or if settings, model,
    vocabulary or text differ from those of the run to resume (each named).
    """

    kind, share = PRETRAINING, PairShare

    def __init__(
        self,
        config: BertConfig,
        documents: list[TokenDocument] | PairSource,
        tokenizer: WordPieceTokenizer,
        held_out: list[Batch],
        output: str | Path | RunFolder,
        arguments: PretrainingArguments,
        corpus: str = "",
        resume: bool = False,
        held_out_share: float | None = None,
        example: str = "",
        world: World | None = None,
        shares: int | None = None,
        cuda_graph: bool = False,
    ) -> None:
        require_fit(config, arguments, world or World(), shares, cuda_graph)
        if tokenizer.vocab_size > config.vocab_size:
            raise ValueError(
                f"the vocabulary has {tokenizer.vocab_size} pieces, the model only {config.vocab_size}"
            )
        super().__init__(arguments, tokenizer, held_out, output, corpus, held_out_share, world, shares)
        self.example, self.cuda_graph = example, cuda_graph
        with self.folder.locked_unless_it_fails():
            checkpoint = self.folder.to_resume(resume)
            random.manual_seed(arguments.seed)
            self.set_up(BertForPreTraining(config), arguments.steps, arguments.warmup_steps)
            self.data = PretrainingData(
                documents, tokenizer, arguments.batch_size, arguments.max_length, arguments.seed
            )
            tokens = (
                (t for document in documents for sentence in document for t in sentence)
                if isinstance(documents, list)
                else documents.tokens()
            )
            self.unigram_entropy = unigram_entropy(tokens)
            self.beside = {"unigram_entropy": self.unigram_entropy}
            if checkpoint is not None:
                self.load(checkpoint)

    @cached_property
    def device_step(self) -> DeviceStep | None:
        """What computes a step on a GPU; None elsewhere."""
        if not on_one_gpu(self.arguments, self.world):
            return None
        return DeviceStep(
            self.model, self.optimizer, self.compute, pack_chosen, self.cuda_graph, self.notes.append
        )

    def figures_of(self, batches: Sequence[Batch]) -> Array:
        """Have a step of these batches computed; returns its figures, as `compute` does."""
        return self.device_step(batches) if self.device_step else self.compute(batches)

    def forward(self, model: Module, share: PairShare) -> tuple[BertPreTrainingOutput, Tensor]:
        """What a model makes of a share of a batch, and its part of the loss of the whole batch."""
        output = model(**share.batch)
        return output, share.loss(output)

    def measure(self) -> dict[str, float]:
        """Losses and accuracies of both tasks."""
        return evaluate(self.model, self.held_out, self.world)

    def describe(self, figures: dict[str, float]) -> str:
        """Held-out figures as one line for the reader."""
        return describe(figures, self.unigram_entropy)

    def brief(self, figures: dict[str, float]) -> list[str]:
        """Each loss beside that of a model that has learned nothing from context."""
        return brief(figures, self.unigram_entropy)

    def require_memory(self, shares: int) -> None:
        """Raise ValueError if a step in that many shares needs more memory than there is."""
        require_fit(self.model.config, self.arguments, self.world, shares)

    def guess(self, progress: Progress) -> None:
        """Report what the model now takes the hidden words of `example` for."""
        if not self.example or not fits(self.example, self.tokenizer, self.model.config):
            return
        try:
            with progress.away():
                fillings = fill_mask(self.model, self.tokenizer, self.example, 4)
        except ValueError:
            return  # the scores are not finite: the next look at the losses says it better
        for of_one_mask in fillings:
            progress.say(f"step {self.step}: {MASK} = {describe_fillings(of_one_mask)}")


def on_one_gpu(settings: PretrainingArguments, world: World) -> bool:
    """Whether a step is one process' work on a GPU, whose results nobody reads before it ends, as loss scaling does."""
    return backend.default().name != "numpy" and world.size == 1 and settings.precision != "float16"


def require_fit(
    config: BertConfig,
    settings: PretrainingArguments,
    world: World,
    shares: int | None = None,
    cuda_graph: bool = False,
) -> None:
    """Raise ValueError if a model cannot be trained with these settings by these processes, in so many shares each."""
    if cuda_graph and not on_one_gpu(settings, world):
        raise ValueError(
            "a CUDA graph is for one process on a GPU, in float32 or bfloat16; here are "
            f"{world.size} on the {'CPU' if backend.default().name == 'numpy' else 'GPU'}, in {settings.precision}"
        )
    require_positions(settings.max_length, config)
    if config.type_vocab_size < 2:
        raise ValueError("type_vocab_size must be at least 2, for sentences A and B; got 1")
    shares = shares_of(settings.batch_size, settings.max_length, world, shares)
    require_memory(config, -(-settings.batch_size // world.size), settings.max_length, shares)


# --- From raw text to a run ------------------------------------------------------------------------------


def prepare(
    corpus: str | Path | Corpus,
    config: BertConfig,
    settings: PretrainingArguments,
    output: str | Path,
    *,
    tokenizer: WordPieceTokenizer | None = None,
    lower_case: bool = True,
    score: str = "frequency",
    held_out: float = HELD_OUT,
    resume: bool = False,
    example: str = "",
    say: Callable[[str], object] = lambda line: None,
    world: World | None = None,
    shares: int | None = None,
    cuda_graph: bool = False,
) -> Pretraining:
    """A run on raw text, ready to `run`: what `python -m minigrad.bert pretrain` starts with.

        with prepare("python-docs", PRESETS["reduced"], PretrainingArguments(), "runs/reduced", say=print) as run:
            run.run()

    corpus: a text that has been read, or where `read_corpus` finds one, or a name of STORIES: fresh stories of the
    grammar in each epoch, with one piece a word. output, resume, example: as in Pretraining. tokenizer: by default a
    vocabulary of `config.vocab_size` pieces is learned from the training text, with lower_case and score as in
    `train_wordpiece`. held_out: the share of the documents that is not trained on. say: takes each line for the
    reader. world, shares: as in Run. cuda_graph: as in Pretraining.

    Raises what Pretraining, `read_corpus` and `Corpus.split` raise; ValueError for a vocabulary that is too small;
    MemoryError for a model that does not fit. What can be known before the text is read is raised before.
    """
    world = world or World()
    require_fit(config, settings, world, shares, cuda_graph)
    folder = RunFolder(output, PRETRAINING, world.is_first)
    with folder.locked_unless_it_fails():
        folder.to_resume(resume)
        if isinstance(corpus, str) and corpus in STORIES:
            text = _stories(corpus, settings, say)
            config = config.replace(vocab_size=text.tokenizer.vocab_size)
            held_out = 0.0
        else:
            text = _documents(corpus, config, settings, tokenizer, lower_case, score, held_out, say)
        return Pretraining(
            config,
            text.source,
            text.tokenizer,
            text.held_out,
            folder,
            settings,
            text.fingerprint,
            resume,
            held_out,
            example,
            world,
            shares,
            cuda_graph,
        )


@dataclass(frozen=True)
class _Text:
    """What a run is made of: what to train on, what cuts it, batches for the evaluation, and a name for the text."""

    source: list[TokenDocument] | PairSource
    tokenizer: WordPieceTokenizer
    held_out: list[Batch]
    fingerprint: str


def _stories(name: str, settings: PretrainingArguments, say: Callable[[str], object]) -> _Text:
    stories = Stories(STORIES[name])
    say(
        f"fresh {stories.setting.name!r} stories in each epoch, {stories.tokenizer.vocab_size} pieces: the special "
        "tokens, and a piece for each word"
    )
    batches = held_out_batches(
        stories, stories.tokenizer, settings.batch_size, settings.max_length, settings.seed
    )
    return _Text(stories, stories.tokenizer, batches, stories.fingerprint())


def _documents(
    corpus: str | Path | Corpus,
    config: BertConfig,
    settings: PretrainingArguments,
    tokenizer: WordPieceTokenizer | None,
    lower_case: bool,
    score: str,
    held_out: float,
    say: Callable[[str], object],
) -> _Text:
    started = time.perf_counter()
    if not isinstance(corpus, Corpus):
        corpus = _read(corpus, say)
    train, rest = corpus.split(held_out, settings.seed)
    words = sum(len(sentence.split()) for sentence in corpus.sentences)
    say(
        f"{len(corpus.documents):,} documents, {sum(1 for _ in corpus.sentences):,} sentences, {words:,} words; "
        f"{len(rest.documents)} documents held out"
    )
    if tokenizer is None:
        tokenizer = _learn_tokenizer(train, config.vocab_size, lower_case, score, say)
    say("encoding the text …")
    with counting("document") as progress:
        documents = encode_documents(train.documents, tokenizer, progress)
    tokens = sum(len(sentence) for document in documents for sentence in document)
    seconds = time.perf_counter() - started
    say(f"WordPiece: {tokenizer.vocab_size:,} pieces, {tokens:,} training tokens ({seconds:.0f} s so far)")
    batches = held_out_batches(
        encode_documents(rest.documents, tokenizer),
        tokenizer,
        settings.batch_size,
        settings.max_length,
        settings.seed,
    )
    return _Text(documents, tokenizer, batches, train.fingerprint())


def _read(source: str | Path, say: Callable[[str], object]) -> Corpus:
    say(f"reading {source} …")
    with counting("part") as progress:
        corpus = read_corpus(source, progress)
    for note in corpus.notes:
        say(f"note: {shown(note, LONGEST_LINE)}")
    return corpus


def _learn_tokenizer(
    train: Corpus, size: int, lower_case: bool, score: str, say: Callable[[str], object]
) -> WordPieceTokenizer:
    say(f"learning a vocabulary of {size:,} pieces …")
    with counting("piece") as progress:
        vocabulary = train_wordpiece(
            train.sentences, size, lower_case=lower_case, score=score, progress=progress
        )
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)
