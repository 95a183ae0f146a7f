"""RES: regions of a stack and of copies of its data."""
