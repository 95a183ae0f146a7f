"""Programs that run on Google Cloud."""
