"""Searches for hyperparameters by a service: what a folder declares, what the service says of one (pure)."""
