"""What a Kubernetes API server, and Kueue in it, refuse."""

from rehearsal.kubernetes.rules import (
    access,
    custom,
    immutable,
    jobs,
    kueue,
    names,
    pods,
    policies,
    probes,
    quotas,
    resources,
    scheduling,
    security,
    services,
    storage,
    workloads,
)
from rehearsal.kubernetes.rules.book import BOOK, alone, around

__all__ = ["BOOK", "alone", "around"]

# Importing a module of rules puts them into the book.
MODULES = (
    access, custom, immutable, jobs, kueue, names, pods, policies, probes, quotas, resources, scheduling,
    security, services, storage, workloads,
)  # fmt: skip
