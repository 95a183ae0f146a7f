"""Jobs of SageMaker."""
