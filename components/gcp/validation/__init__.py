"""Alerts of the validation of a stack on Google Cloud."""
