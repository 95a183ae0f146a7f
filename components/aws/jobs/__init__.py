"""Training without a cluster on AWS: SageMaker's domain, people, tracking and logs."""
