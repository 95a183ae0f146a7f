"""Python of this tree on Cloud Run functions."""
