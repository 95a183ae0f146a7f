"""K8S: what runs in a cluster, and the cluster that runs it."""
