"""Secret Manager for the pods of the MLflow server."""
