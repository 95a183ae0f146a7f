"""The layout of several clusters: a manager that queues jobs, and workers that run them (docs/adr/0094)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.clusters.common import KubernetesLayout
from infra.stackspec.clusters.pools import PoolSpec
from infra.stackspec.clusters.shared_fs import SharedFileSystemSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.model import Cidr, Image, Model, Name, Usd


class ClusterSpec(Model):
    """A cluster that runs jobs: a Pulumi stack of its own, `STACK-NAME`."""

    name: Name
    """Name of the cluster: in the names of its stack and its pools, and in `trainstack.dev/cluster`."""

    cloud: Literal["aws", "gcp"] | None = None
    """Cloud of the cluster; null: `trainstack:cloud`. A manager on AWS may have clusters on Google Cloud."""

    region: str
    """Region of the cluster."""

    network_cidr: Cidr
    """IPv4 range of its network; no other cluster of the stack has addresses of it."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that its network spans."""

    api_access: tuple[str, ...] = ()
    """IPv4 ranges that reach its API server from the internet, as that of the machine with its first `up`.
    The manager does not reach it while there are some: its network then gets the public address of the name,
    which these ranges do not contain. Remove them once you reach the manager's network."""

    shared_fs: SharedFileSystemSpec | None = None
    """Shared file system of the cluster, instead of `data.shared_fs`; null: jobs use the object store."""

    on: AwsSpec | GcpSpec | None = Field(default=None, discriminator="cloud")
    """Settings of its cloud. On another cloud than the manager's: over those of the profile there. On the
    manager's: only for a cluster in an account or a project of its own, over `on` of the stack."""

    monthly_usd: Usd | None = None
    """Part of `budget.monthly_usd` that a budget of its own has: required on another cloud, in another AWS
    account and under another billing account, whose cost the manager's budget does not count. The manager's
    budget has the rest."""

    tracking_image: Image | None = None
    """Image of its tracking server; null: `tracking.image`. Only with `on`, for images in a private
    registry."""

    smoke_image: Image | None = None
    """Image of its validation and of jobs without their own; null: `smoke.image`. Only with `on`."""

    system_machine: str | None = None
    """Machine type of its system pool, only on another cloud: by default that of the profile there."""

    idle_minutes: Annotated[int, Field(ge=5, le=240)] | None = None
    """As `layout.idle_minutes`, only on another cloud, whose profile has the default."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """Pools of nodes for jobs. Their full names are `CLUSTER-POOL`; a guarantee of a team for a pool holds
    on every cluster with a pool of that name."""


OF_OTHER_PLACE = ("on", "monthly_usd", "tracking_image", "smoke_image")
"""Fields of a `ClusterSpec` that only one on another cloud, account or project than the manager's has."""
OF_OTHER_CLOUD = (*OF_OTHER_PLACE, "system_machine", "idle_minutes")
"""Fields of a `ClusterSpec` that one on another cloud than the manager's may have."""


class LargeLayout(KubernetesLayout):
    """Several Kubernetes clusters behind one queue, for 20 and more people.

    The stack itself is the manager, without GPUs. `api_access`, `network_cidr` and `zones` are those of the
    manager; the other settings hold for all. API servers of the clusters are only in private networks on AWS
    without an `api_access` of their own, and have only DNS names with access by IAM on Google Cloud.
    """

    has_cluster: ClassVar = True
    several: ClassVar = True

    profile: Literal["large"]
    """Several clusters for 20 and more people, set by `trainstack:profile`."""

    scheduler: Literal["kueue", "slurm"]
    """Scheduler that queues and starts jobs; only `kueue` is supported yet."""

    clusters: Annotated[tuple[ClusterSpec, ...], Field(min_length=1, max_length=20)]
    """Clusters that run jobs, at most 20, as Kueue connects no more. With one the queue is that of a `medium`
    stack at a higher price: it is for the time until another one is added, as after the loss of a cluster."""

    training_pools: ClassVar[tuple[PoolSpec, ...]] = ()
    interruptible: ClassVar = False

    def validated(self, _: object) -> list[str]:
        """None: each cluster validates its pools."""
        return []


def clusters_of(layout: object) -> tuple[ClusterSpec, ...]:
    """The clusters of a large stack; of any other layout none."""
    return layout.clusters if isinstance(layout, LargeLayout) else ()
