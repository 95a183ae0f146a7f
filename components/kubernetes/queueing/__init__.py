"""Queues, quotas and namespaces of teams."""
