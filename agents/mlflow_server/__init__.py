"""Starts the MLflow server of a cluster."""
