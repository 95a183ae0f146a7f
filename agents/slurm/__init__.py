"""Programs of nodes and of the login node of a Slurm system; standard library only."""
