"""Advice on machines of Google Cloud."""
