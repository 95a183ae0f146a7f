"""A Slurm system that runs: its commands, and the queue that they show."""
