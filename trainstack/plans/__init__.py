"""Nodes and user data that a plan of the engine ends."""
