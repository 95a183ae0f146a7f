"""Where a finished result goes: the result file, the termination message, the MLflow run."""
