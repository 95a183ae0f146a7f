"""Prometheus, Grafana and Alertmanager in the cluster: what they read, show, and whom they tell."""
