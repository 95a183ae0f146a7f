"""What is asked of a Kubernetes cluster, and what its answers become."""
