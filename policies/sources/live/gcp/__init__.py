"""Queries and tables for projects of Google Cloud."""
