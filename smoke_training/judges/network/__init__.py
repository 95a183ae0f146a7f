"""Judges of collectives, links, rails and the transport."""
