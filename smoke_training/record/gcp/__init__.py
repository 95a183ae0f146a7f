"""Requests to Google Cloud for the record of a run."""
