"""The validation as a job of a managed training service, for stacks without a cluster."""
