"""Checkpoints, the kill and the resume."""
