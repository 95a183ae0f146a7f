"""A real Slurm on this machine: the daemons of Debian 12, unpacked and not installed, for generated files."""
