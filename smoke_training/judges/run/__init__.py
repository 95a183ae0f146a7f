"""Judges of the run itself: participants, liveness, end, baseline."""
