"""Collectors: read an account, a project or a cluster, and write a snapshot for an audit."""
