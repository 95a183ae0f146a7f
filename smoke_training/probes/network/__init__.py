"""Collectives, links between nodes, rails, and what the adapters counted."""
