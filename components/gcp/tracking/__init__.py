"""The experiment tracking server on Google Cloud."""
