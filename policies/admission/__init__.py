"""The rules that judge one object of Kubernetes, as policies of its API server."""
