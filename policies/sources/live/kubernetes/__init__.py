"""Queries and tables for Kubernetes clusters."""
