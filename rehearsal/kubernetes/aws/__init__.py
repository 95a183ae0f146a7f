"""Emulated EKS: the parts of a cluster that depend on AWS."""
