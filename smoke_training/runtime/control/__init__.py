"""The launchers of a run as one: they start together, watch together and end together.

Node 0 coordinates. It waits for all nodes, starts them when their facts match, watches the ranks of all of
them, and ends the run everywhere when a rank hangs or dies.
"""
