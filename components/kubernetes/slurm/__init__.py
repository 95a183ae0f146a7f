"""Slurm as pods of a cluster, run by SchedMD's slurm-operator."""
