"""What makes the records of `book/records`: a module for each, under its name."""
