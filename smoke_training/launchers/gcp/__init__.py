"""Launchers of Google Cloud."""
