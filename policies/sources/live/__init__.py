"""Accounts and clusters as a source: API responses, kept as a snapshot and converted to resources."""
