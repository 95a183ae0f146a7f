"""The layout of a stack whose jobs are queued by Slurm."""
