"""Which components a profile composes on a cloud."""
