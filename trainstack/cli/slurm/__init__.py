"""`trainstack slurm`: the configuration of a Slurm system from a stack file."""
