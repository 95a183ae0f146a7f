"""The page of a report: one HTML file without scripts and without requests."""
