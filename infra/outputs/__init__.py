"""The output contract of a deployed stack."""
