"""The bundle that a client keeps: reports, outputs, inventory, evidence, runbooks, and the way out."""
