"""Measurements of other programs: read as they are published, and judged by the same references."""
