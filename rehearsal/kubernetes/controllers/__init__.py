"""Emulated controllers and kubelets: nodes, pods, services, volumes, queues."""
