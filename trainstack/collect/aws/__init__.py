"""Snapshots of AWS accounts."""
