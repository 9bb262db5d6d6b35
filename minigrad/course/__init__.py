"""What the notebooks import: figures (and, with the chapters, the checks of the exercises)."""
