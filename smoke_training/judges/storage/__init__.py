"""Judges of storage and the data loader."""
