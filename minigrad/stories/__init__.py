"""Texts from a grammar, of which the truth is known: what each word means, and the least loss there can be."""
