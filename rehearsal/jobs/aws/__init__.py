"""Emulated AWS services of jobs: SageMaker, Lambda, CloudWatch Logs, Budgets, SNS, MLflow."""
