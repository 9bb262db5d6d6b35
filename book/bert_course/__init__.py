"""What the notebooks import: what any page shows, the checks of the exercises, what one chapter shows; and grading."""
