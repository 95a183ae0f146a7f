"""K8S: workloads of a cluster, and the cluster itself."""
