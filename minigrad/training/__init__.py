"""A run of anything: its loop, its folder and checkpoints, its settings, what it tells the reader."""
