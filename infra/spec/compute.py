"""The cluster and its pools of nodes."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from infra.spec.model import LogRetentionDays, Model, Name

Principal = Annotated[str, StringConstraints(pattern=r"^arn:aws:iam::\d{12}:(role|user)/.+$")]
"""An IAM role or user."""

Count = Annotated[int, Field(ge=0, le=450)]
"""A number of nodes; 450 is the EKS limit per managed node group."""


class SystemPoolSpec(Model):
    """CPU nodes for what runs the cluster: add-ons, Kueue, MLflow."""

    instance_type: str
    """EC2 type without an accelerator, such as `m6i.xlarge`."""

    min_size: Annotated[int, Field(ge=2, le=450)]
    """Fewest nodes; two, so that one may fail."""

    max_size: Count
    """Most nodes."""


class ClusterSpec(Model):
    """The Kubernetes control plane."""

    kubernetes_version: Annotated[str, StringConstraints(pattern=r"^1\.\d+$")]
    """Minor version, such as `1.34`."""

    public_access_cidrs: tuple[str, ...]
    """Who may reach the API server from the internet; empty: only from inside the VPC."""

    efa_driver: Literal["device_plugin", "dra"]
    """How EFA devices reach pods: the device plugin, or Dynamic Resource Allocation (Kubernetes 1.34)."""

    admin_principal_arns: Annotated[tuple[Principal, ...], Field(min_length=1)]
    """IAM roles or users with cluster-admin rights, the one that deploys included."""

    idle_minutes: Annotated[int, Field(ge=5, le=240)]
    """How long a node may be unneeded before it is given back, in minutes."""

    log_retention_days: LogRetentionDays
    """How long control-plane logs are kept, in days."""

    system_pool: SystemPoolSpec
    """The pool for everything that is not training."""


class PoolSpec(Model):
    """A group of GPU nodes of one type, bought in one way, for one purpose."""

    name: Name
    """Name of the pool; also the Kueue flavor and the node label `trainstack.dev/pool`."""

    instance_type: str
    """EC2 type with an accelerator, such as `p4d.24xlarge`."""

    purpose: Literal["training", "fine_tuning", "interactive"]
    """What the pool is for (R5); interactive pools may be shared, training pools never are."""

    capacity: Literal["on_demand", "spot", "reserved", "capacity_block"]
    """How nodes are bought; `reserved` is an on-demand capacity reservation."""

    reservation_id: Annotated[str, StringConstraints(pattern=r"^cr-[0-9a-f]{8,17}$")] | None = None
    """The capacity reservation or block (`cr-...`) that `reserved` and `capacity_block` draw on."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones the nodes may be in; exactly one with EFA, because EFA traffic does not cross zones."""

    efa: bool
    """Whether nodes get every EFA interface of their type, and a placement group."""

    min_size: Count = 0
    """Fewest nodes; 0 costs nothing while nobody trains."""

    max_size: Annotated[int, Field(ge=1, le=450)]
    """Most nodes."""

    disk_gib: Annotated[int, Field(ge=100, le=16384)] = 300
    """Encrypted gp3 root volume, in GiB; training images of 20 GiB and more are common."""

    expected_utilization: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Share of the largest size that is expected to run on average; used for the cost estimate alone."""
