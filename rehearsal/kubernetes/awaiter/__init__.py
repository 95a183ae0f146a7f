"""Wait conditions of the Kubernetes provider, as data and as annotations (docs/reference/awaiter.md)."""
