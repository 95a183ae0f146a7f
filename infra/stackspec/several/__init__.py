"""The specs of the stacks of several clusters, from one spec."""
