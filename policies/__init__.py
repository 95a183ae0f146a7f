"""Rules for training stacks, on resources from any source: a state, a preview, an account, a cluster."""
