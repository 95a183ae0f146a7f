"""Programs that run on AWS."""
