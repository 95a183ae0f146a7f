"""Experiment tracking on AWS."""
