"""A run of anything: its loop, its folder and checkpoints, its settings, what it shows the reader."""
