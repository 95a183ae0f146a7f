"""Record a finished result: result file, termination message, MLflow run, alert."""
