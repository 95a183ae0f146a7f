"""Rules of stacks on Google Cloud."""
