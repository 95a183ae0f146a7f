"""Requests to AWS for the record of a run."""
