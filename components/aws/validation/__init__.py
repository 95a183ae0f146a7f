"""Alerts of the validation of a stack on AWS."""
