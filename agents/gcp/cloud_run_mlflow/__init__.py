"""What runs in the tracking server's container on Cloud Run; the standard library and MLflow only."""
