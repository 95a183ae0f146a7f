"""Login to AWS."""
