"""Judges of checkpoints and of the resume."""
