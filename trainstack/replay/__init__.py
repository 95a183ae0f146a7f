"""Replays of recorded states: a program runs against the exported state of a stack, in a rehearsal."""
