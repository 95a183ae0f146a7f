"""Violations that somebody answers for, until a day."""
