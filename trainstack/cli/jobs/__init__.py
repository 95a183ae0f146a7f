"""`trainstack run`, `runs` and `stop`: jobs of a stack that trains with the cloud's managed service."""
