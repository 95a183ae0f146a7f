"""Storage targets and the data loader."""
