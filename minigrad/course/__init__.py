"""What the notebooks import: figures, widgets, source listings, stored runs, what one chapter shows, the checks of the
exercises; and, in `authoring`, the tools of those who write them."""
