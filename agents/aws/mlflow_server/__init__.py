"""AWS Secrets Manager for the pods of the MLflow server."""
