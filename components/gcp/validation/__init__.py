"""What the validation of a stack needs from Google Cloud."""
