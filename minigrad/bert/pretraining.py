"""Pre-training: masked language modelling and next-sentence prediction together.

A run lives in a folder: `checkpoint-000500/` (Hugging Face's files, and the state of the training),
`metrics.csv` and `evaluation.csv`. Everything that the next step depends on is in the checkpoint, so that
a run that was stopped or killed goes on bit for bit, on the same machine with the same NumPy.
"""

from __future__ import annotations

import dataclasses
import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minigrad import backend, optim, random
from minigrad.bert.checkpoint import Pretrained, from_pretrained, pretrained_files
from minigrad.bert.config import BertConfig
from minigrad.bert.corpus import Corpus, read_corpus
from minigrad.bert.data import (
    Batch,
    PairSource,
    PretrainingData,
    TokenDocument,
    encode_documents,
    fingerprint,
    held_out_batches,
)
from minigrad.bert.info import require_memory
from minigrad.bert.metrics import Tally, brief, describe, evaluate, quiet_overflow, unigram_entropy
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.predict import describe_fillings, fill_mask, fits
from minigrad.bert.progress import Progress, Stop, counting, interruptible
from minigrad.bert.reading import LONGEST_LINE, SUMS, CheckpointError, is_there, shown
from minigrad.bert.runs import RunFolder, RunFolderError, environment
from minigrad.bert.settings import PretrainingArguments
from minigrad.bert.state import STATE, TrainingState, differences, read_moments, read_state, state_files
from minigrad.bert.stories import STORIES, Stories
from minigrad.bert.tokenizer import WordPieceTokenizer
from minigrad.bert.wordpiece import MASK, train_wordpiece
from minigrad.files import SaveError
from minigrad.nn import Parameter
from minigrad.tensor import Array

__all__ = ["DivergenceError", "Pretraining", "parameter_groups", "prepare", "require_positions"]

HELD_OUT = 0.05  # share of the documents
PARTS = ("scaler", "data", "tally")  # of a run: what its checkpoints keep by state_dict and load_state_dict


class DivergenceError(ArithmeticError):
    """The loss or the gradients are not finite any more."""


def parameter_groups(model: BertForPreTraining, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters for AdamW: biases and LayerNorms without decay, as in the released `optimization.py`."""
    decayed: list[Any] = []
    plain: list[Any] = []
    for name, parameter in model.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def require_positions(max_length: int, config: BertConfig) -> None:
    """Raise ValueError if sequences may be longer than the model has positions."""
    if max_length > config.max_position_embeddings:
        raise ValueError(
            f"max_length is {max_length}, but the model has {config.max_position_embeddings} positions"
        )


class Pretraining:
    """A run of pre-training: what `python -m minigrad.bert pretrain` and the chapters use.

    config: of the model to make. documents: training text as ids (`encode_documents`), or a PairSource. tokenizer:
    what made them. held_out: batches for the evaluation. output: the run's folder, which is locked until `run` ends,
    or the `with` that this is used in. corpus: a name or fingerprint of the text, so that a resumed run can tell
    whether it is the same. resume: go on from the newest checkpoint in `output`. held_out_share: of the text, for who
    evaluates the model later. example: a text with a [MASK], whose likeliest fillings are reported every `eval_every`
    steps, if the model has positions for it; they change nothing in the run.

    Raises RunFolderError if another run is in `output`; CheckpointError if it holds a run and `resume` is false, if
    its newest checkpoint is damaged, or if settings, model, vocabulary or text differ from those of the run to
    resume (each named).
    """

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
    ) -> None:
        require_positions(arguments.max_length, config)
        if config.type_vocab_size < 2:
            raise ValueError("type_vocab_size must be at least 2, for sentences A and B; got 1")
        if tokenizer.vocab_size > config.vocab_size:
            raise ValueError(
                f"the vocabulary has {tokenizer.vocab_size} pieces, the model only {config.vocab_size}"
            )
        self.arguments, self.tokenizer, self.held_out = arguments, tokenizer, held_out
        self.corpus, self.held_out_share, self.example = corpus, held_out_share, example
        self.folder = output if isinstance(output, RunFolder) else RunFolder(output)
        self.output = self.folder.path
        self.notes: list[str] = []  # for the reader, when the run starts
        self.stopped_by: int | None = None  # the signal that ended `run` before the last step
        self.step = 0
        self.tally = Tally()  # of the steps since the last row
        self.evaluation: dict[str, float] = {}
        # of the steps not looked at yet: the step, what it is, and its value, which may still be on a GPU
        self._unchecked: list[tuple[int, str, Any]] = []
        with self.folder.locked_unless_it_fails():
            checkpoint = self.folder.to_resume(resume)
            random.manual_seed(arguments.seed)
            self.model = BertForPreTraining(config)
            groups = parameter_groups(self.model, arguments.weight_decay)
            self.optimizer = optim.AdamW(groups, lr=arguments.learning_rate, eps=1e-6)
            self.schedule = optim.LinearWarmupDecay(self.optimizer, arguments.warmup_steps, arguments.steps)
            self.scaler = optim.GradScaler(enabled=arguments.precision == "float16")
            self.data = PretrainingData(
                documents, tokenizer, arguments.batch_size, arguments.max_length, arguments.seed
            )
            tokens = (
                (t for document in documents for sentence in document for t in sentence)
                if isinstance(documents, list)
                else documents.tokens()
            )
            self.unigram_entropy = unigram_entropy(tokens)
            if checkpoint is not None:
                self._load(checkpoint)

    def __enter__(self) -> Pretraining:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.release()

    # --- Training ----------------------------------------------------------------------------------------

    def run(self, report: Callable[[str], None] | None = None) -> dict[str, float]:
        """Train to the last step, or until Ctrl-C (or SIGTERM, SIGHUP), which finishes the step, saves and returns.

        report: takes each line for the reader; by default it is printed above the progress bar. Returns the
        last held-out figures; `stopped_by` is then the signal, if one stopped it. Raises DivergenceError naming
        the step at which the loss or the gradients stopped being finite, which is looked at every `log_every`
        steps and before each save, so that the last checkpoint is from before; SaveError if the last checkpoint
        cannot be written (one that fails on the way is reported, and the run goes on); RunFolderError if
        another run has come in since this one ended.
        """
        settings = self.arguments
        with self.folder:
            self._begin()
            with (
                Progress(self.step, settings.steps, report) as progress,
                interruptible() as stop,
                _no_garbage(),
            ):
                for note in self.notes:
                    progress.say(f"note: {note}")
                progress.measure()
                while self.step < settings.steps and stop.signal is None:
                    norm, rate = self.train_step(self.tally)
                    if self._is_due(settings.log_every):
                        self._log(norm, rate, progress)
                    progress.advance()
                    if self._is_due(settings.eval_every):
                        self._evaluate(progress)
                        self._guess(progress)
                    if self._is_due(settings.save_every):
                        self._save_on_the_way(progress)
                self._end(stop, progress)
        return self.evaluation

    def train_step(self, tally: Tally) -> tuple[Array, float]:
        """One optimiser step. Returns the gradients' norm, an array without axes, and the learning rate.

        Nothing here waits for a GPU (except loss scaling): the next step is prepared while it works on this one.
        """
        micro_batches = self.arguments.gradient_accumulation_steps
        self.optimizer.zero_grad()
        with quiet_overflow():
            with backend.default_matmul_precision(self.arguments.precision):
                for _ in range(micro_batches):
                    batch = self.data.next_batch()
                    output = self.model(**batch)
                    assert output.loss is not None
                    self._unchecked.append((self.step + 1, "the loss", output.loss.data))
                    tally.add(output, batch)
                    loss = output.loss if micro_batches == 1 else output.loss * (1 / micro_batches)
                    self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.optimizer)
            norm = optim.clip_grad_norm(self.model.parameters(), self.arguments.max_grad_norm)
            rate = self.optimizer.groups[0]["lr"]
            stepped = self.scaler.step(self.optimizer)
        if stepped or self.scaler.get_scale() <= 1:  # otherwise a smaller scale will do
            self._unchecked.append((self.step + 1, "the norm of the gradients", norm))
        self.scaler.update()
        self.schedule.step()
        self.step += 1
        return norm, rate

    def _begin(self) -> None:
        """Make folder and model ready for the next step."""
        if self.folder.newest_step() > self.step:
            raise RunFolderError(f"{self.output} has been trained on by another run since: resume that one")
        backend.of(next(self.model.parameters()).data).keep_freed_memory()
        self.folder.clear()
        for table in (self.folder.metrics, self.folder.evaluations):
            table.drop_after(self.step)
        self.model.train()
        self.stopped_by = None

    def _is_due(self, every: int) -> bool:
        """Whether what is done every so many steps is to be done now; at the end, all is."""
        return self.step % every == 0 or self.step == self.arguments.steps

    def _log(self, norm: Array, rate: float, progress: Progress) -> None:
        self._stop_if_not_finite()
        figures, speed = self.tally.means(), progress.speed(self.tally.tokens)
        row = {
            "step": self.step,
            **figures,
            "learning_rate": rate,
            "grad_norm": float(norm),
            "tokens_per_second": speed,
        }
        self.folder.metrics.append(row, progress.say)
        pieces = [f"rate {rate:.1e}", f"{speed / 1000:.1f}k tokens/s"]
        progress.show([*brief(figures, self.unigram_entropy), *pieces])
        self.tally = Tally()
        progress.measure()

    def _stop_if_not_finite(self) -> None:
        """Look at the losses and norms of the steps since the last look."""
        unchecked, self._unchecked = self._unchecked, []
        for step, what, value in unchecked:
            if math.isfinite(value):
                continue
            saved = self.folder.newest_step()
            kept = f"the checkpoint of step {saved} is kept" if saved else "no checkpoint was saved before it"
            raise DivergenceError(
                f"{what} is {float(value)} in step {step}; {kept}. Try a lower learning rate or a longer warm-up"
            )

    def _evaluate(self, progress: Progress) -> None:
        if not self.held_out:
            return
        self._stop_if_not_finite()
        with progress.away():
            self.evaluation = evaluate(self.model, self.held_out)
        row = {"step": self.step, **self.evaluation, "unigram_entropy": self.unigram_entropy}
        self.folder.evaluations.append(row, progress.say)
        progress.say(f"step {self.step}: held out {describe(self.evaluation, self.unigram_entropy)}")

    def _guess(self, progress: Progress) -> None:
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

    def _save_on_the_way(self, progress: Progress) -> None:
        if self.step == self.arguments.steps:
            return  # at the end, a failure is an error
        try:
            with progress.away():
                self.save()
        except SaveError as error:
            progress.say(f"step {self.step}: {error}; training goes on, and saves again at the next chance")

    def _end(self, stop: Stop, progress: Progress) -> None:
        """Save the last step, if that is not done yet, and say whether there are more to make."""
        if self.folder.newest_step() < self.step:
            self.save()
        if self.step == self.arguments.steps:
            return
        self.stopped_by = stop.signal
        if self.step:
            total = self.arguments.steps
            progress.say(f"stopped at step {self.step} of {total} and saved; go on with --resume")
        else:
            progress.say("stopped before the first step: there is nothing to save")

    # --- Saving and resuming -----------------------------------------------------------------------------

    def save(self) -> Path:
        """Write the checkpoint of this step, whole or not at all, and drop all but the newest two.

        Raises SaveError if it cannot be written, DivergenceError if the run has stopped being finite; the
        checkpoints before it are untouched.
        """
        self._stop_if_not_finite()
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        state = TrainingState(
            step=self.step,
            optimizer_steps=self.optimizer.steps,
            random=random.get_state(),
            **parts,
            arguments=dataclasses.asdict(self.arguments),
            corpus=self.corpus,
            held_out=self.held_out_share,
            held_out_text=fingerprint(self.held_out),
            evaluation=self.evaluation,
            environment=environment(),
        )
        moments = dict(zip(self._optimised(), self.optimizer.state, strict=True))
        files = pretrained_files(self.model, self.tokenizer) | state_files(state, moments)
        return self.folder.save(self.step, files)

    def _optimised(self) -> dict[str, Parameter]:
        """The parameters by name, in the optimiser's order."""
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        return {names[id(p)]: p for group in self.optimizer.groups for p in group["params"]}

    def _load(self, checkpoint: Path) -> None:
        """Go on from a checkpoint. Raises CheckpointError; nothing on the disk is changed."""
        with self.folder.naming_the_one_before(checkpoint):
            state, saved = read_state(checkpoint), from_pretrained(checkpoint)
        self._require_the_same(checkpoint, state, saved)
        with self.folder.naming_the_one_before(checkpoint):
            moments = read_moments(checkpoint, self._optimised())
            for name in PARTS:
                getattr(self, name).load_state_dict(getattr(state, name))
            if self.data.index > self.data.batches_per_epoch:
                raise CheckpointError(
                    f"{checkpoint / STATE}: data.index: expected at most {self.data.batches_per_epoch}, the batches "
                    f"of an epoch, got {self.data.index}"
                )
        self.model.load_state_dict(saved.model.state_dict())
        self.optimizer.load_state_dict({"steps": state.optimizer_steps, "state": moments})
        self.schedule.step()
        random.set_state(state.random)
        self.step, self.evaluation = state.step, state.evaluation
        if not is_there(checkpoint / SUMS):
            self.notes.append(
                f"{checkpoint} has no {SUMS}: whether its files are what was saved is not known"
            )
        changed = differences(state.environment, environment())
        if changed:
            note = f"the run goes on, but not bit for bit as it would have there: {'; '.join(changed)}"
            self.notes.append(shown(note, LONGEST_LINE))

    def _require_the_same(self, checkpoint: Path, state: TrainingState, saved: Pretrained) -> None:
        """Raise CheckpointError naming all in which the run of a checkpoint is another one."""
        differing = differences(saved.model.config.to_dict(), self.model.config.to_dict())
        differing += differences(state.arguments, dataclasses.asdict(self.arguments))
        if saved.tokenizer is None or saved.tokenizer.vocab != self.tokenizer.vocab:
            differing.append("the vocabulary")
        elif saved.tokenizer.lower_case != self.tokenizer.lower_case:
            differing.append("whether the text is lower-cased")
        if state.corpus != self.corpus:
            differing.append(f"the text (fingerprint {state.corpus} there, {self.corpus} here)")
        held_out = fingerprint(self.held_out)
        if not differing and state.held_out_text != held_out:  # vocabulary and settings change that too
            differing.append(f"the held-out text (fingerprint {state.held_out_text} there, {held_out} here)")
        if differing:
            raise CheckpointError(
                f"{checkpoint} cannot be resumed with other settings; these differ: {'; '.join(differing)}"
            )


@contextmanager
def _no_garbage() -> Iterator[None]:
    """A step makes no cycles: let the garbage collector not look at the model and the text again and again."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


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
) -> Pretraining:
    """A run on raw text, ready to `run`: what `python -m minigrad.bert pretrain` starts with.

        with prepare("python-docs", PRESETS["reduced"], PretrainingArguments(), "runs/reduced", say=print) as run:
            run.run()

    corpus: a text that has been read, or where `read_corpus` finds one, or a name of STORIES: fresh stories of the
    grammar in each epoch, with one piece a word. output, resume, example: as in Pretraining. tokenizer: by default a
    vocabulary of `config.vocab_size` pieces is learned from the training text, with lower_case and score as in
    `train_wordpiece`. held_out: the share of the documents that is not trained on. say: takes each line for the
    reader.

    Raises what Pretraining, `read_corpus` and `Corpus.split` raise; ValueError for a vocabulary that is too small;
    MemoryError for a model that does not fit. What can be known before the text is read is said before.
    """
    require_positions(settings.max_length, config)
    require_memory(config, settings.batch_size, settings.max_length)
    folder = RunFolder(output)
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
