"""What the provider waits for, as data and as conditions of its annotations; see docs/awaiter.md."""
