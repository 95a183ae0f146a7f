"""Versions that a stack pins, newer ones, and the nodes that an update drains."""
