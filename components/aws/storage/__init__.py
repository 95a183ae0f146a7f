"""Buckets and file systems on AWS."""
