"""GPU node pools on EKS."""
