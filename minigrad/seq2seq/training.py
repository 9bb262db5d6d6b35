"""Learning to translate: one loop for recurrent models and for the Transformer, on stories or on a user's file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from minigrad import optim, random
from minigrad.bert.config import IGNORED
from minigrad.bert.info import machine_memory
from minigrad.bert.metrics import unigram_entropy
from minigrad.distributed import Share, World
from minigrad.nn import Module
from minigrad.seq2seq.checkpoint import (
    PretrainedSeq2Seq,
    from_pretrained,
    make_model,
    parameter_count,
    pretrained_files,
)
from minigrad.seq2seq.config import Seq2SeqConfig, TransformerConfig
from minigrad.seq2seq.corpus import TranslationError, oddities, read_pairs
from minigrad.seq2seq.data import IdPair, PairSource, TranslationData, pad_pairs
from minigrad.seq2seq.metrics import TranslationTally, brief, compare, describe, evaluate
from minigrad.seq2seq.output import Seq2SeqOutput
from minigrad.seq2seq.predict import translate_ids, words_of
from minigrad.seq2seq.settings import TranslationArguments
from minigrad.stories.lexicon import SETTINGS, Setting
from minigrad.stories.translation import TranslationPair, draw_translations, translation_tokenizer
from minigrad.tensor import Tensor
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import train_wordpiece
from minigrad.training.epochs import Batch
from minigrad.training.folders import RunFolder, RunKind
from minigrad.training.loop import Training
from minigrad.training.progress import Progress, counting
from minigrad.training.run import DivergenceError
from minigrad.training.shares import shares_of

CORPORA = {f"stories-{name}": SETTINGS[name] for name in ("light", "varied", "long")}
HELD_OUT = 0.05  # share of a user's file
VOCAB_SIZE = 4000  # pieces that are learned from a user's file, at most
PAIRS_AN_EPOCH = 3200  # of stories
# Peaks where none is given. The paper's own formula has no limit: its peak grows as the warm-up shrinks, and is 0.0088
# for a run of 100 steps on a model 128 wide.
RECURRENT_RATE, TRANSFORMER_RATE = 1e-2, 1.5e-3
NAMED_ROWS = 5  # of those that are left out

TRANSLATION = RunKind(
    "translation",
    TranslationArguments,
    TranslationTally,
    ("loss", "accuracy"),
    ("loss", "accuracy", "exact_match", "bleu"),
)


class TranslationShare(Share):
    """A share of a batch of translations.

    places: arrays have b rows; between the layers of a recurrent network b for each step, those of a step together.
    """

    def __init__(self, whole: Batch, number: int, count: int) -> None:
        super().__init__(whole, number, count)
        for name in ("input_ids", "labels"):
            pairs, steps = whole[name].shape
            starts = range(self.rows.start, self.rows.start + steps * pairs, pairs)
            self.places[steps * len(self.rows)] = [range(i, i + len(self.rows)) for i in starts]


class TranslationTraining(Training):
    """A run that learns to translate: what `python -m minigrad.seq2seq train` runs.

    config: of the model to make. pairs: ids of sources and targets without start and end tokens, or what makes those
    of an epoch. tokenizer: the one that made them; its [PAD], [CLS] and [SEP] are padding, start and end
    token. held_out: pairs for the evaluation, of which the first `eval_translations` are translated. output:
    the run's folder, which is locked until `run` ends, or the `with` that this is used in. corpus: a name or
    fingerprint of the text, so that a resumed run can tell whether it is the same. resume: go on from the
    newest checkpoint in `output`. held_out_share: of the text, if it was split. shares: as in Run.

    Raises what bert's Pretraining raises, for the same reasons.
    """

    kind, share = TRANSLATION, TranslationShare

    def __init__(
        self,
        config: Seq2SeqConfig,
        pairs: Sequence[IdPair] | PairSource,
        tokenizer: WordPieceTokenizer,
        held_out: Sequence[IdPair],
        output: str | Path | RunFolder,
        arguments: TranslationArguments,
        corpus: str = "",
        resume: bool = False,
        held_out_share: float | None = None,
        shares: int | None = None,
    ) -> None:
        if tokenizer.vocab_size > config.vocab_size:
            raise ValueError(
                f"the vocabulary has {tokenizer.vocab_size} pieces, the model only {config.vocab_size}"
            )
        config = config.replace(
            pad_token_id=tokenizer.pad_token_id,
            start_token_id=tokenizer.cls_token_id,
            end_token_id=tokenizer.sep_token_id,
        )
        end, padding, size = config.end_token_id, config.pad_token_id, arguments.batch_size
        batches = [pad_pairs(held_out[i : i + size], end, padding) for i in range(0, len(held_out), size)]
        super().__init__(arguments, tokenizer, batches, output, corpus, held_out_share, shares=shares)
        self.held_out_pairs = list(held_out)
        self.translated = list(held_out[: arguments.eval_translations])
        self.translations: list[list[int]] = []  # of the last evaluation
        with self.folder.locked_unless_it_fails():
            checkpoint = self.folder.to_resume(resume)
            random.manual_seed(arguments.seed)
            self.set_up(make_model(config), arguments.steps, arguments.warmup_steps)
            self.data = TranslationData(pairs, size, arguments.seed, end, padding)
            self.unigram_entropy = unigram_entropy(
                token for _, target in self.data.pairs for token in [*target, end]
            )
            if checkpoint is not None:
                self.load(checkpoint)

    # --- What is its own ---------------------------------------------------------------------------------

    def optimizer_and_schedule(self, warmup_steps: int) -> tuple[optim.Optimizer, optim.Schedule]:
        """For a Transformer, Adam and the schedule of Vaswani et al. 2017, section 5.3; else AdamW, with a
        linear rise and fall."""
        settings, config = self.arguments, self.model.config
        if isinstance(config, TransformerConfig):
            peak = (config.d_model * warmup_steps) ** -0.5  # of the paper's equation 3
            factor = (settings.learning_rate or min(peak, TRANSFORMER_RATE)) / peak
            adam = optim.Adam(self.model.parameters(), lr=factor, betas=(0.9, 0.98), eps=1e-9)
            return adam, optim.InverseSquareRootWarmup(adam, config.d_model, warmup_steps)
        matrices = [parameter for parameter in self.model.parameters() if parameter.ndim > 1]
        others = [parameter for parameter in self.model.parameters() if parameter.ndim == 1]
        groups = [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        adamw = optim.AdamW(groups, lr=settings.learning_rate or RECURRENT_RATE)
        return adamw, optim.LinearWarmupDecay(adamw, warmup_steps, self.total_steps)

    def forward(self, model: Module, share: Share) -> tuple[Seq2SeqOutput, Tensor]:
        """What a model makes of a share of a batch, and its part of the loss of the whole batch."""
        output = model(**share.batch)
        return output, output.loss * share.weight(share.whole["labels"] != IGNORED)

    def model_files(self) -> dict[str, bytes]:
        """The files of model and tokenizer in a checkpoint, by name."""
        return pretrained_files(self.model, self.tokenizer, self.arguments.max_length)

    def read_model(self, checkpoint: Path) -> PretrainedSeq2Seq:
        """What `model_files` has made, of whichever kind its model is. Raises CheckpointError or ConfigError."""
        return from_pretrained(checkpoint)

    def measure(self) -> dict[str, float]:
        """Loss and accuracy of all held-out pairs; of the first `eval_translations`, exact matches and BLEU."""
        figures = evaluate(self.model, self.held_out)
        settings = self.arguments
        sources = [source for source, _ in self.translated]
        try:
            found = translate_ids(self.model, sources, 1, settings.max_length, settings.batch_size)
        except ValueError as error:  # logits that are not finite
            raise DivergenceError(f"step {self.step}: {error}") from None
        self.translations = [one.ids for one in found]
        references = [list(target) for _, target in self.translated]
        return figures | compare(self.tokenizer, self.translations, references)

    def describe(self, figures: dict[str, float]) -> str:
        """Held-out figures as one line for the reader."""
        return describe(figures)

    def brief(self, figures: dict[str, float]) -> list[str]:
        """The figures of the last steps as the pieces of a progress bar."""
        return brief(figures)

    def require_memory(self, shares: int) -> None:
        """Raise ValueError if weights, gradients and moments need more memory than this machine has."""
        _require_memory(self.model.config, shares)

    def guess(self, progress: Progress) -> None:
        """Report the translation of the first held-out pair."""
        (source, target), found = self.translated[0], self.translations[0]
        texts = [" ".join(words_of(self.tokenizer, ids)) for ids in (source, found, target)]
        verdict = "right" if found == list(target) else f"expected: {texts[2]}"
        progress.say(f"step {self.step}: {texts[0]} → {texts[1] or '(nothing)'} ({verdict})")


# --- From texts to a run ---------------------------------------------------------------------------------


@dataclass
class _Text:
    """What a run is made of: what to train on, what cuts it, pairs for the evaluation, and a name for the text."""

    pairs: Sequence[IdPair] | PairSource
    tokenizer: WordPieceTokenizer
    held_out: list[IdPair]
    fingerprint: str
    notes: list[str] = field(default_factory=list)


def prepare_translation(
    corpus: str | Path,
    config: Seq2SeqConfig,
    settings: TranslationArguments,
    output: str | Path,
    *,
    evaluation: str | Path | None = None,
    held_out: float = HELD_OUT,
    vocab_size: int = VOCAB_SIZE,
    lower_case: bool = False,
    resume: bool = False,
    shares: int | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> TranslationTraining:
    """A run on stories or on a file, ready to `run`: what `python -m minigrad.seq2seq train` starts with.

        with prepare_translation("stories-light", PRESETS["transformer"], TranslationArguments(), "runs/mine") as run:
            run.run()

    corpus: a name of CORPORA, whose stories are told afresh in each epoch, or a file of two columns as in
    `read_pairs`. For a file: evaluation, another one to score the model on; without it, the pairs of a share
    `held_out` of the sources are not trained on. vocab_size, lower_case: of the WordPiece vocabulary that is
    learned from both columns. config: its vocab_size is replaced by the actual one. output, resume, shares:
    of TranslationTraining. say: takes each line for the reader.

    Raises what TranslationTraining and `read_pairs` raise; TranslationError if nothing is left to learn from or to
    score on; ValueError for a model that does not fit into memory.
    """
    count = shares_of(settings.batch_size, settings.max_length, World(), shares)
    folder = RunFolder(output, TRANSLATION)
    with folder.locked_unless_it_fails():
        folder.to_resume(resume)
        if corpus in CORPORA:
            text, share = _stories(CORPORA[str(corpus)], settings, say), 0.0
        else:
            share = 0.0 if evaluation is not None else held_out
            text = _file(Path(corpus), evaluation, share, vocab_size, lower_case, settings, say)
        config = config.replace(vocab_size=text.tokenizer.vocab_size)
        _require_memory(config, count)
        run = TranslationTraining(
            config,
            text.pairs,
            text.tokenizer,
            text.held_out,
            folder,
            settings,
            text.fingerprint,
            resume,
            share,
            shares,
        )
        run.notes[:0] = text.notes
        return run


def _require_memory(config: Seq2SeqConfig, shares: int) -> None:
    """Raise ValueError if weights, the gradients of each share and moments need more memory than this machine has."""
    needed, there = 4 * (3 + shares) * parameter_count(config), machine_memory()
    if there is not None and needed > there:
        raise ValueError(
            f"the parameters of this model, their gradients and moments need {needed / 1e9:,.1f} GB, "
            f"this machine has {there / 1e9:,.1f}"
        )


def _encode(pair: TranslationPair, tokenizer: WordPieceTokenizer) -> IdPair:
    return tokenizer.token_ids(pair.source), tokenizer.token_ids(pair.target)


def _fits(pair: IdPair, max_length: int) -> bool:
    """Whether source and target have pieces, and with an end token no more than max_length."""
    return all(0 < len(side) < max_length for side in pair)


def _fingerprint(pairs: Sequence[TranslationPair]) -> str:
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(f"{pair.source}\t{pair.target}\n".encode())
    return digest.hexdigest()[:16]


def _stories(setting: Setting, settings: TranslationArguments, say: Callable[[str], object]) -> _Text:
    tokenizer = translation_tokenizer(setting)

    def draw(count: int, seed: int) -> list[IdPair]:
        """Pairs of fresh stories; those that are too long are left out."""
        pairs = [_encode(pair, tokenizer) for pair in draw_translations(setting, count, seed)]
        return [pair for pair in pairs if _fits(pair, settings.max_length)]

    def epoch(rng: np.random.Generator) -> list[IdPair]:
        return draw(PAIRS_AN_EPOCH, int(rng.integers(1, 2**40)))

    held_out = draw(settings.eval_translations, 2**40 + settings.seed)
    if not held_out:
        raise TranslationError(
            f"every one of {settings.eval_translations} {setting.name!r} stories has more than max_length = "
            f"{settings.max_length} pieces"
        )
    say(
        f"fresh {setting.name!r} stories in each epoch, {tokenizer.vocab_size} pieces: the special tokens, and a piece "
        "for each word of both languages"
    )
    notes = []
    if left_out := settings.eval_translations - len(held_out):
        notes.append(
            f"stories of more than {settings.max_length} pieces are left out, {left_out} of the "
            f"{settings.eval_translations} held-out ones; --max-length sets the limit"
        )
    return _Text(epoch, tokenizer, held_out, _fingerprint(draw_translations(setting, 50, 0)), notes)


def _file(
    path: Path,
    evaluation: str | Path | None,
    share: float,
    vocab_size: int,
    lower_case: bool,
    settings: TranslationArguments,
    say: Callable[[str], object],
) -> _Text:
    say(f"reading {path} …")
    rows = list(enumerate(read_pairs(path), start=1))
    if evaluation is not None:
        train, rest, source = rows, list(enumerate(read_pairs(evaluation), start=1)), Path(evaluation)
    else:
        train, rest = _split(path, rows, share, settings.seed)
        source = path
    say(f"{len(train):,} pairs to learn from, {len(rest):,} held out")
    texts = (text for _, pair in train for text in (pair.source, pair.target))
    with counting("piece") as progress:
        vocabulary = train_wordpiece(texts, vocab_size, lower_case=lower_case, progress=progress)
    tokenizer = WordPieceTokenizer(vocabulary, lower_case=lower_case)
    say(f"WordPiece: {tokenizer.vocab_size:,} pieces, learned from both columns")
    notes: list[str] = []
    for file, own in {source: rest, path: rows}.items():  # of one file, all rows
        notes += oddities(file, [pair for _, pair in own])
    pairs = _encode_rows(path, train, tokenizer, settings.max_length, notes)
    held_out = _encode_rows(source, rest, tokenizer, settings.max_length, notes)
    unknown = sum(tokenizer.unk_token_id in [*a, *b] for a, b in held_out)
    if unknown:
        notes.append(
            f"{unknown} of {len(held_out)} held-out pairs have characters that no pair to learn from has"
        )
    seen = {pair.source for _, pair in train}
    if count := sum(pair.source in seen for _, pair in rest):
        notes.append(f"{count} of the {len(rest)} sources in {source} are in {path} too")
    return _Text(pairs, tokenizer, held_out, _fingerprint([pair for _, pair in train]), notes)


Rows = list[tuple[int, TranslationPair]]  # of a file, with their numbers from 1


def _split(path: Path, rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to learn from, and those of a share of the sources: no source is on both sides."""
    if not 0 < share < 1:
        raise ValueError(f"held_out must be above 0 and below 1, got {share}")
    sources = list(dict.fromkeys(pair.source for _, pair in rows))
    count = max(1, round(share * len(sources)))
    if count >= len(sources):
        raise TranslationError(
            f"{path} has too few different sources, {len(sources)}, to hold a share of {share} out"
        )
    order = np.random.default_rng([seed, 5]).permutation(len(sources))
    chosen = {sources[i] for i in order[:count]}
    return [row for row in rows if row[1].source not in chosen], [
        row for row in rows if row[1].source in chosen
    ]


def _encode_rows(
    path: Path, rows: Rows, tokenizer: WordPieceTokenizer, max_length: int, notes: list[str]
) -> list[IdPair]:
    """Rows as ids. Those that are too long, or have no pieces, are left out, and a note names them.

    Raises TranslationError if none is left.
    """
    encoded = [(number, _encode(pair, tokenizer)) for number, pair in rows]
    left_out = [number for number, pair in encoded if not _fits(pair, max_length)]
    if left_out:
        first = ", ".join(map(str, left_out[:NAMED_ROWS]))
        more = f" and {len(left_out) - NAMED_ROWS} more" if len(left_out) > NAMED_ROWS else ""
        what = (
            f"{path}: {len(left_out)} of {len(rows)} rows have more than max_length = {max_length} pieces with the end "
            f"token, or none: row{'s' if len(left_out) > 1 else ''} {first}{more}"
        )
        if len(left_out) == len(rows):
            raise TranslationError(f"{what}; nothing is left")
        notes.append(f"{what}; left out")
    return [pair for _, pair in encoded if _fits(pair, max_length)]
