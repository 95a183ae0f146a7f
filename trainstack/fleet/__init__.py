"""Commands on the stacks of many clients: selection, separate processes, results, deployment in waves."""

NAME = "fleet.yaml"
"""Name of the fleet file."""
