"""Pods that run programs of `agents/`: their files, Deployments, namespaces and permissions."""
