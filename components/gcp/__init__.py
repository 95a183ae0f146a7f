"""Components on Google Cloud."""
