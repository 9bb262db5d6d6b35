"""What the notebooks import: figures, widgets, source listings, stored runs, the checks of the exercises."""
