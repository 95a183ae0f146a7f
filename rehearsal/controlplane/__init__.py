"""A real Kubernetes control plane on this machine: etcd, API server, controllers, scheduler, KWOK nodes."""
