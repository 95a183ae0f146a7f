"""Layout of a stack with one Slurm system; independent of the cloud."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.layouts import INTERRUPTIBLE, ClusterLayout, LargeLayout, PoolSpec, SmallLayout
from infra.stackspec.model import Cidr, Model, SlurmVersion


class LoginSpec(Model):
    """The machine on which members submit jobs, and from which the stack loads accounts."""

    machine: str
    """Machine type without an accelerator, such as `m6i.xlarge`. With `on.slinky`, that of two nodes with the
    pods of login, controller and accounting."""

    disk_gib: Annotated[int, Field(ge=20, le=16384)]
    """Encrypted root volume, in GiB. Without effect for nodes of a cluster (`on.slinky`)."""


class SlurmLayout(Model):
    """One Slurm system: pools are partitions, teams are accounts with quotas and budgets."""

    has_cluster: ClassVar = False
    several: ClassVar = False

    profile: Literal["large-slurm"]
    """One Slurm system for 20 and more people, set by `trainstack:profile`."""

    slurm_version: SlurmVersion
    """Version of Slurm, such as `25.11`."""

    network_cidr: Cidr
    """IPv4 range of the network: a node takes an address per RDMA interface."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that the network spans."""

    idle_minutes: Annotated[int, Field(ge=5, le=240)] | None
    """Minutes until an idle node above `min_nodes` is terminated; null, on Google Cloud: the service's
    time; null with `on.slinky`, whose nodes always run."""

    max_jobs: Annotated[int, Field(ge=1)] | None
    """Maximum number of jobs that run and wait at the same time; with the nodes it decides the size of the
    controller. Null, on Google Cloud: the service sizes it."""

    login: LoginSpec
    """The login node."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """Pools of nodes; each is a partition."""

    @property
    def training_pools(self) -> tuple[PoolSpec, ...]:
        """Pools for training, else those for fine-tuning."""
        training = tuple(pool for pool in self.pools if pool.purpose == "training")
        return training or tuple(pool for pool in self.pools if pool.purpose == "fine_tuning")

    @property
    def by_path(self) -> dict[str, PoolSpec]:
        """The pools by their path in a spec."""
        return {f"layout.pools[{index}]": pool for index, pool in enumerate(self.pools)}

    @property
    def interruptible(self) -> bool:
        """Return whether the cloud may reclaim nodes of a training job."""
        return any(pool.purchase.kind in INTERRUPTIBLE for pool in self.training_pools)

    @property
    def nodes(self) -> int:
        """Nodes of all pools at their largest, and the login node."""
        return 1 + sum(pool.max_nodes for pool in self.pools)

    def validated(self, named: Sequence[str] | None) -> list[str]:
        """Pools that the gate validates; by default those for training and fine-tuning."""
        return [
            pool.name
            for pool in self.pools
            if (pool.purpose in ("training", "fine_tuning") if named is None else pool.name in named)
        ]


Layout = Annotated[SmallLayout | ClusterLayout | LargeLayout | SlurmLayout, Field(discriminator="profile")]
"""Layout of the stack, by profile."""
