"""The program of the tracking server's container on Cloud Run; standard library and MLflow only."""
