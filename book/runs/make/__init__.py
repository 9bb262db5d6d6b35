"""What makes the records of `book/runs`: a module for each, under its name."""
