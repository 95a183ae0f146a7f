"""Implementations of the protocols of `stacks.parts`: a folder per cloud."""
