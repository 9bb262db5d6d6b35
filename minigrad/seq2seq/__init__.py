"""Models that translate: recurrent ones and the Transformer, and the search for what they write."""

from minigrad.seq2seq.checkpoint import from_pretrained, save_pretrained
from minigrad.seq2seq.config import RECURRENT_PRESETS, TRANSFORMER_PRESETS, RecurrentConfig, TransformerConfig
from minigrad.seq2seq.corpus import read_pairs
from minigrad.seq2seq.data import TranslationData, pad_pairs, shift_right
from minigrad.seq2seq.decoding import Hypothesis, beam_search, greedy_search
from minigrad.seq2seq.output import Seq2SeqOutput
from minigrad.seq2seq.predict import align, translate
from minigrad.seq2seq.recurrent import RecurrentSeq2Seq
from minigrad.seq2seq.transformer import Transformer
from minigrad.stories.translation import TranslationPair, draw_translations, translation_tokenizer

__all__ = [
    "RECURRENT_PRESETS",
    "TRANSFORMER_PRESETS",
    "Hypothesis",
    "RecurrentConfig",
    "RecurrentSeq2Seq",
    "Seq2SeqOutput",
    "Transformer",
    "TransformerConfig",
    "TranslationData",
    "TranslationPair",
    "align",
    "beam_search",
    "draw_translations",
    "from_pretrained",
    "greedy_search",
    "pad_pairs",
    "read_pairs",
    "save_pretrained",
    "shift_right",
    "translate",
    "translation_tokenizer",
]
