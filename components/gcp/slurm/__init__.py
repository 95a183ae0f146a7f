"""Slurm on Google Cloud by Cluster Director: the cluster with its nodes, and its accounts."""
