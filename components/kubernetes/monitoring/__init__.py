"""Prometheus, Grafana and Alertmanager in the cluster: scrapes, dashboards, rules and receivers."""
