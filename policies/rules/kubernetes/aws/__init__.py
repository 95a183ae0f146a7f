"""Rules about EKS features in the cluster."""
