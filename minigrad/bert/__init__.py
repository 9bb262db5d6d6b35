"""BERT, one file per chapter of the model."""
