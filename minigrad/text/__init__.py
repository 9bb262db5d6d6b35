"""Text: one spelling, a vocabulary that is learned from it, the cutting into pieces; sentences and corpora."""
