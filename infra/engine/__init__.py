"""The Pulumi engine: installation of the CLI, operations, and progress."""
