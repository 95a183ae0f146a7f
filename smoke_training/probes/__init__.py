"""Torch probes: each measures one thing and returns plain numbers; none of them judges."""
