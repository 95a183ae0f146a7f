"""SageMaker as the service of runs."""
