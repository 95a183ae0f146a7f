"""REP: reproducibility."""
