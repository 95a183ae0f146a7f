"""Snapshots of Google Cloud projects."""
