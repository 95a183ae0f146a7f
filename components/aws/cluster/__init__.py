"""The EKS cluster of a stack."""
