"""Admission policies of Kubernetes for the rules that judge a single object."""
