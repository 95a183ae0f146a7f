"""Finds pods with idle GPUs, warns their owners and stops them."""
