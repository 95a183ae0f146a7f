"""Settings of one cluster or of several ones: versions, access, monitoring."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.clusters.pools import SystemPoolSpec
from infra.stackspec.idle import IdleGpusSpec
from infra.stackspec.model import Cidr, Days, KubernetesVersion, Model, WebAddress
from infra.stackspec.receivers import ReceiverSpec


class InClusterMonitoring(Model):
    """Prometheus, Grafana and Alertmanager run in the cluster (docs/explanation/monitoring.md)."""

    kind: Literal["in_cluster"]
    """`in_cluster`"""

    retention_days: Days
    """Retention of metrics in days; less if `storage_gib` is too small."""

    storage_gib: Annotated[int, Field(ge=10, le=16384)]
    """Disk of Prometheus, in GiB; when full, the oldest metrics are deleted."""

    memory_gib: Annotated[int, Field(ge=2, le=512)] | None = None
    """Memory limit of Prometheus, in GiB; null: estimated from nodes, processors and GPUs."""

    runbooks_url: WebAddress | None = None
    """Address of the folder `docs/runbooks` of your copy of this repository, for links in alerts; null:
    alerts have the path of the page in the repository."""

    receivers: tuple[ReceiverSpec, ...] = ()
    """Paging services and chats, besides mail."""


class NoMonitoring(Model):
    """No monitoring: no dashboards, and no alerts except those of the cloud."""

    kind: Literal["none"]
    """`none`"""


Monitoring = Annotated[InClusterMonitoring | NoMonitoring, Field(discriminator="kind")]
"""Monitoring of the stack."""


class KubernetesLayout(Model):
    """Settings of a layout with Kubernetes clusters."""

    kubernetes_version: KubernetesVersion
    """Minor version, such as `1.36`."""

    api_access: tuple[str, ...]
    """Address ranges that may reach the Kubernetes API from the internet; empty: only from inside."""

    network_cidr: Cidr
    """IPv4 range of the network: every GPU node takes an address per pod and RDMA interface."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that the network spans."""

    idle_minutes: Annotated[int, Field(ge=5, le=240)] | None
    """Minutes until an unneeded node is removed; null, on Google Cloud alone: GKE decides by its profile
    optimize-utilization."""

    idle_gpus: IdleGpusSpec | None
    """Handling of allocated but unused GPUs; null: none."""

    admission: Literal["deny", "warn"] | None
    """Action of the API server on an object that breaks a policy (docs/reference/admission.md).

    `deny` rejects the object, `warn` warns its creator and writes to the audit log. null: `deny` in `staging`
    and `prod`, else `warn`."""

    monitoring: Monitoring
    """Monitoring and alerts of queues, GPUs and the platform: `{kind: in_cluster, retention_days: 30,
    storage_gib: 50}` or `{kind: none}`."""

    system_pool: SystemPoolSpec
    """The pool for system pods."""
