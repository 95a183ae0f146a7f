"""The `trainstack` command and what its commands do."""
