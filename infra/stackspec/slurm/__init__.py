"""A stack whose jobs are queued by Slurm: its layout and rules."""
