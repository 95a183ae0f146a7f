"""Prices of stacks on Google Cloud."""
