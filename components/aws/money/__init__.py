"""Budgets on AWS."""
