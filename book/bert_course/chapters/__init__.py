"""What one chapter shows and no other: a file each, under the stem of its notebook."""
