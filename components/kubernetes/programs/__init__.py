"""Python of this tree that runs in pods of the cluster, and what such programs share."""
