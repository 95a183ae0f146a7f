"""Components on a Kubernetes cluster."""
