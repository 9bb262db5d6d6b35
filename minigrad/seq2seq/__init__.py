"""From one sequence to another: translation."""

from minigrad.seq2seq.translation import TranslationPair, draw_translations, read_pairs, translation_tokenizer

__all__ = ["TranslationPair", "draw_translations", "read_pairs", "translation_tokenizer"]
