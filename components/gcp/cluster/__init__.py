"""The GKE cluster of a stack."""
