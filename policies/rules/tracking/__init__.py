"""TRK: where runs are written down: MLflow, its server, its logins."""
