"""What commands use of AWS or Google Cloud."""
