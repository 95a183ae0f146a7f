"""Node pools on GKE."""
