"""Rules of stacks on AWS."""
