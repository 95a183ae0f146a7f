"""The networks of a stack on Google Cloud."""
