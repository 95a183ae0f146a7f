"""The MLflow server in a cluster."""
