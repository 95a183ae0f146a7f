"""Launchers of AWS."""
