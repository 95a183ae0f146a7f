"""Emulated SageMaker: requests of clients and the processes of training jobs."""
