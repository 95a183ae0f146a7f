"""Slurm on AWS Parallel Computing Service: the cluster, its nodes and queues, its accounts."""
