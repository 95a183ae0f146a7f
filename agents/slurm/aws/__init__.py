"""Requests to SageMaker's MLflow by a Slurm system on AWS; standard library only."""
