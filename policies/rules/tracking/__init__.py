"""TRK: experiment tracking: MLflow, its server and its logins."""
