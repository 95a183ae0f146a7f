"""The `trainstack` command and the logic of its commands."""
