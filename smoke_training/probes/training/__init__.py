"""Training steps: their times, their parts, their numbers."""
