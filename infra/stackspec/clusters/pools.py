"""Pools of nodes of a cluster."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Model, Name, TimeOfDay
from infra.stackspec.purchases import Purchase

Nodes = Annotated[int, Field(ge=0)]
"""A number of nodes."""


class HoursSpec(Model):
    """Hours of the week, in UTC, in which some priority classes may use a pool; others always may."""

    days: Annotated[tuple[Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"], ...], Field(min_length=1)]
    """Days of the week on which the hours start."""

    start: TimeOfDay
    """Start in UTC, such as `20:00`."""

    hours: Annotated[int, Field(ge=1, le=23)]
    """Length in hours; may pass midnight."""

    classes: Annotated[tuple[Literal["production", "default", "sweep"], ...], Field(min_length=1)]
    """Restricted priority classes; a job without a class is `default`. Jobs that still run at the end are
    stopped and queued again."""


class PoolSpec(Model):
    """A pool of nodes of one machine type, purchase and purpose."""

    name: Name
    """Name of the pool; also the Kueue flavor and the node label `trainstack.dev/pool`."""

    machine: str
    """Machine type, such as `p4d.24xlarge`; without accelerators, such as `m6i.4xlarge`."""

    purpose: Literal["training", "fine_tuning", "interactive", "data"]
    """Purpose of the pool; GPUs of interactive pools may be shared, `data` pools have no GPUs."""

    purchase: Purchase
    """Purchase of nodes: `{kind: on_demand}`, `{kind: spot}`, `{kind: reserved, id: ...}`,
    `{kind: block, id: ...}`, `{kind: flex_start}` or `{kind: queued}`."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the nodes; exactly one with RDMA, as that network does not cross zones."""

    rdma: bool
    """Whether nodes have every RDMA interface of their type (EFA on AWS) and are placed close together."""

    min_nodes: Nodes = 0
    """Minimum number of nodes; 0 costs nothing while no job runs."""

    max_nodes: Annotated[int, Field(ge=1)]
    """Maximum number of nodes."""

    disk_gib: Annotated[int, Field(ge=100, le=16384)] = 300
    """Encrypted root volume, in GiB; training images often have 20 GiB and more."""

    expected_utilization: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Expected average share of `max_nodes`; used only for the cost estimate."""

    preference: int = 0
    """Jobs try pools with a lower value first; among equal values the cheapest that fits, by node price."""

    own_queue: bool = False
    """Whether jobs use the pool only through its own queue, and never as overflow of other pools: for
    expensive machines. A job selects it by the label `kueue.x-k8s.io/queue-name`."""

    teams: Annotated[tuple[str, ...] | None, Field(min_length=1)] = None
    """Teams with a queue for the pool; null: all. Needs `own_queue`."""

    hours: HoursSpec | None = None
    """Hours in which some priority classes may use the pool; null: no restriction. Needs `own_queue`."""


class SystemPoolSpec(Model):
    """CPU nodes for system pods: add-ons, Kueue, MLflow."""

    machine: str
    """Machine type without an accelerator, such as `m6i.xlarge`."""

    min_nodes: Annotated[int, Field(ge=1)]
    """Minimum number of nodes; with two, one may fail."""

    max_nodes: Nodes
    """Maximum number of nodes."""
