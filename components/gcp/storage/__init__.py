"""Buckets and file systems on Google Cloud."""
