"""Wrapper around a team's script inside every job of a managed training service."""
