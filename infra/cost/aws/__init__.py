"""Prices of stacks on AWS."""
