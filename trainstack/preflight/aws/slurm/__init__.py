"""Checks for stacks with Slurm on AWS Parallel Computing Service."""
