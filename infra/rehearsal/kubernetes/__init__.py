"""The emulated kubernetes provider: one API server's worth of objects per emulated cluster."""

from infra.rehearsal.kubernetes.cloud import KubernetesCloud

__all__ = ["KubernetesCloud"]
