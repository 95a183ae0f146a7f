"""The launchers of a run as one: they start together, watch together and end together."""
