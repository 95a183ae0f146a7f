"""What is the same of every managed training service."""
