"""How jobs are started besides as JobSets."""
