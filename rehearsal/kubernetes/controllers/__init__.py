"""What the controllers and kubelets of a cluster do: nodes, pods, services, volumes, queues."""
