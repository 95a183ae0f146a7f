"""The network of a stack on AWS."""
