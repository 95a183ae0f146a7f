"""What came out, for people and for programs."""
