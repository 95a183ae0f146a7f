"""Judges of the run itself: who took part, who lived, what went before."""
