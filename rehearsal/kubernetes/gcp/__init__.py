"""Emulated GKE: the parts of a cluster that depend on Google Cloud."""
