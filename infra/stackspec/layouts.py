"""Layouts of a stack: one model per profile, with its pools of machines; independent of the cloud."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.clusters.common import InClusterMonitoring, KubernetesLayout, Monitoring, NoMonitoring
from infra.stackspec.clusters.large import ClusterSpec, LargeLayout
from infra.stackspec.clusters.pools import HoursSpec, Nodes, PoolSpec, SystemPoolSpec
from infra.stackspec.gcp.purchases import FlexStart
from infra.stackspec.model import Cidr, Email, Model, Name
from infra.stackspec.purchases import OnDemand, Reserved, Spot
from infra.stackspec.team_budgets import MonthlyUsd, OverBudget

__all__ = [
    "VALIDATED",
    "ClusterLayout",
    "ClusterSpec",
    "HoursSpec",
    "InClusterMonitoring",
    "JobMachineSpec",
    "LargeLayout",
    "Monitoring",
    "NoMonitoring",
    "Nodes",
    "NotebooksSpec",
    "PersonSpec",
    "PoolSpec",
    "SmallLayout",
    "SystemPoolSpec",
]

VALIDATED = ("training", "fine_tuning")
"""Purposes of pools that the gate validates by default."""
INTERRUPTIBLE = ("spot", "flex_start", "queued")
"""Ways to buy nodes that the cloud may reclaim."""


class ClusterLayout(KubernetesLayout):
    """One shared Kubernetes cluster with GPU pools, queues and a tracking server.

    For 5 to 20 people in the profile `medium`, 1 to 5 in `small-cluster`, which has other defaults.
    """

    has_cluster: ClassVar = True
    several: ClassVar = False

    profile: Literal["medium", "small-cluster"]
    """Size of the shared cluster, set by `trainstack:profile`: `medium` for 5 to 20 people, `small-cluster`
    for 1 to 5."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """Pools of nodes for jobs."""

    @property
    def training_pools(self) -> tuple[PoolSpec, ...]:
        """Pools for training, else those for fine-tuning."""
        by_purpose = {
            purpose: tuple(pool for pool in self.pools if pool.purpose == purpose) for purpose in VALIDATED
        }
        return by_purpose["training"] or by_purpose["fine_tuning"]

    @property
    def by_path(self) -> dict[str, PoolSpec | SystemPoolSpec]:
        """The system pool and the others, by their path in a spec."""
        pools = {f"layout.pools[{index}]": pool for index, pool in enumerate(self.pools)}
        return {"layout.system_pool": self.system_pool, **pools}

    @property
    def interruptible(self) -> bool:
        """Return whether the cloud may reclaim nodes of a training job."""
        return any(pool.purchase.kind in INTERRUPTIBLE for pool in self.training_pools)

    def validated(self, named: Sequence[str] | None) -> list[str]:
        """Pools that the gate validates; by default those for training and fine-tuning."""
        return [
            pool.name
            for pool in self.pools
            if (pool.purpose in VALIDATED if named is None else pool.name in named)
        ]


class JobMachineSpec(Model):
    """A machine type for jobs of a managed service."""

    name: Name
    """Name of the machine, as in `trainstack run --on l4`."""

    machine: str
    """The service's machine type, such as `ml.g6.xlarge`."""

    purchase: Annotated[OnDemand | Spot | TrainingPlan | Reserved | FlexStart, Field(discriminator="kind")]
    """Default purchase: `{kind: on_demand}` or `{kind: spot}`. Jobs cannot change the others:
    `{kind: training_plan, arn: ...}` on AWS, `{kind: reserved, id: ...}` or `{kind: flex_start}` on Google
    Cloud."""

    max_nodes: Annotated[int, Field(ge=1, le=64)]
    """Maximum number of machines in one job."""

    expected_utilization: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Expected share of the month that `max_nodes` machines run, for the price; 0.1 is 73 hours."""

    @property
    def reservation(self) -> str | None:
        """ARN of the training plan, or full name of the reservation; None: bought by the hour."""
        match self.purchase:
            case TrainingPlan(arn=name) | Reserved(id=name):
                return name
        return None


class PersonSpec(Model):
    """A person who runs jobs: a notebook profile, a role for jobs, and optionally a budget."""

    name: Name
    """Name of the profile, and of the person in tags of jobs."""

    email: Email
    """Address for budget alerts; owner of the person's runs."""

    team: str
    """Name of the person's team in `teams`, which selects the folders of the jobs."""

    monthly_usd: MonthlyUsd | None = None
    """Monthly budget of the person's jobs and notebooks; null: none."""

    over_budget: OverBudget = "warn"
    """`stop`: jobs over budget are stopped. `warn`: they are only reported."""


class NotebooksSpec(Model):
    """The managed notebooks of the service (on AWS: JupyterLab and Code Editor in SageMaker Studio)."""

    machines: Annotated[tuple[str, ...], Field(min_length=1)]
    """Machine types of notebooks, the default first, such as `ml.t3.medium`."""

    disk_gib: Annotated[int, Field(ge=5, le=16384)]
    """Maximum disk of a notebook, in GiB; billed until the notebook is deleted."""


class SmallLayout(Model):
    """1 to 5 people train with the cloud's managed service, without a cluster."""

    has_cluster: ClassVar = False
    several: ClassVar = False

    profile: Literal["small"]
    """Managed training without a cluster for 1 to 5 people, set by `trainstack:profile`."""

    network_cidr: Cidr
    """IPv4 range of the network: a machine of a job takes two addresses, a notebook up to four."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that the network spans; more of them find spot machines more often."""

    people: Annotated[tuple[PersonSpec, ...], Field(min_length=1)]
    """People who run jobs."""

    machines: Annotated[tuple[JobMachineSpec, ...], Field(min_length=1)]
    """Machine types of jobs."""

    notebooks: NotebooksSpec
    """The managed notebooks of people."""

    max_hours: Annotated[float, Field(gt=0)]
    """Maximum run time of a job, in hours."""

    idle_minutes: Annotated[int, Field(ge=60, le=525600)]
    """Idle minutes after which a notebook is stopped; people may choose a shorter time. SageMaker's minimum
    is 60."""

    @property
    def training_pools(self) -> tuple[PoolSpec, ...]:
        """None: jobs have machines of their own."""
        return ()

    @property
    def interruptible(self) -> bool:
        """Return whether the cloud may reclaim the machines of a job."""
        return any(machine.purchase.kind == "spot" for machine in self.machines)

    def validated(self, named: Sequence[str] | None) -> list[str]:
        """Machine types that the gate validates; by default the first."""
        return list(named or (self.machines[0].name,))
