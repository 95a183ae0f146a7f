"""Reserved capacity of Google Cloud."""
