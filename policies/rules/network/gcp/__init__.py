"""Rules about the networks of GKE clusters."""
