"""Main program of a cluster's MLflow server."""
