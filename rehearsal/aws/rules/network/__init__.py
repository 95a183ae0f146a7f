"""Rules about VPCs."""
