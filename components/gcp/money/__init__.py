"""Budgets on Google Cloud."""
