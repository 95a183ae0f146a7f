"""What a stack of each size consists of: one model per profile, the pools of machines in it, no cloud."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.gcp.purchases import FlexStart, Queued
from infra.stackspec.idle import IdleGpusSpec
from infra.stackspec.model import Cidr, Days, Email, KubernetesVersion, Model, Moment, Name, TimeOfDay
from infra.stackspec.team_budgets import MonthlyUsd, OverBudget

Nodes = Annotated[int, Field(ge=0)]
"""A number of nodes."""


class OnDemand(Model):
    """Nodes are bought when they are needed, at the list price."""

    kind: Literal["on_demand"]
    """`on_demand`"""


class Spot(Model):
    """Nodes are cheaper and may be taken back at any time: for work that checkpoints."""

    kind: Literal["spot"]
    """`spot`"""


class Reserved(Model):
    """Nodes run on capacity that is reserved, and paid for, without an end."""

    kind: Literal["reserved"]
    """`reserved`"""

    id: str
    """The cloud's name of the reservation; on AWS a capacity reservation (`cr-...`), on Google Cloud
    `projects/<project>/reservations/<name>`, with `/reservationBlocks/<block>` where one is meant. Of jobs,
    which may run in any zone, `projects/<project>/zones/<zone>/reservations/<name>`."""


class CapacityBlock(Model):
    """Nodes run on capacity that is reserved for a period with a beginning and an end."""

    kind: Literal["block"]
    """`block`"""

    id: str
    """The cloud's name of the block; on AWS a Capacity Block (`cr-...`), on Google Cloud the reservation that
    a future reservation in calendar mode makes."""

    starts: Moment | None = None
    """When it begins, as the cloud says: no job of the pool's queue starts sooner. Null: unknown."""

    ends: Moment | None = None
    """When it ends: jobs are stopped in time before, and start only where they end by then or checkpoint.
    Null: unknown; the cloud takes the nodes away under running jobs."""


_INTERRUPTIBLE = ("spot", "flex_start", "queued")

Purchase = Annotated[
    OnDemand | Spot | Reserved | CapacityBlock | FlexStart | Queued, Field(discriminator="kind")
]
"""How nodes are bought."""


class HoursSpec(Model):
    """Hours of the week in which less urgent jobs may use a pool, in UTC; others use it at any time."""

    days: Annotated[tuple[Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"], ...], Field(min_length=1)]
    """Days of the week on which they begin."""

    start: TimeOfDay
    """When they begin, in UTC, such as `20:00`."""

    hours: Annotated[int, Field(ge=1, le=23)]
    """For how long, in hours; they may go on past midnight."""

    classes: Annotated[tuple[Literal["production", "default", "sweep"], ...], Field(min_length=1)]
    """Priority classes of the jobs that are held to them; a job without a class is `default`. Those that
    still run at the end are stopped and queued again."""


class PoolSpec(Model):
    """A group of nodes of one machine type, bought in one way, for one purpose."""

    name: Name
    """Name of the pool; also the Kueue flavor and the node label `trainstack.dev/pool`."""

    machine: str
    """The cloud's machine type, such as `p4d.24xlarge`; one without an accelerator, such as `m6i.4xlarge`,
    for jobs that need none."""

    purpose: Literal["training", "fine_tuning", "interactive", "data"]
    """What the pool is for; interactive pools may be shared, training pools never are, `data` has no GPUs."""

    purchase: Purchase
    """How nodes are bought: `{kind: on_demand}`, `{kind: spot}`, `{kind: reserved, id: ...}`,
    `{kind: block, id: ...}`, `{kind: flex_start}` or `{kind: queued}`."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones the nodes may be in; exactly one with RDMA, because that network does not cross zones."""

    rdma: bool
    """Whether nodes get every RDMA interface of their type (EFA on AWS) and are placed close together."""

    min_nodes: Nodes = 0
    """Fewest nodes; 0 costs nothing while no job runs."""

    max_nodes: Annotated[int, Field(ge=1)]
    """Most nodes."""

    disk_gib: Annotated[int, Field(ge=100, le=16384)] = 300
    """Encrypted root volume, in GiB; training images of 20 GiB and more are common."""

    expected_utilization: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Share of the largest size that is expected to run on average; used for the cost estimate alone."""

    preference: int = 0
    """Jobs try pools of a lower number first; among equals the cheapest that fits, by the price of a node."""

    own_queue: bool = False
    """Whether jobs get the pool only through the queue of its name, and never because others are full: for
    machines that are too dear for whatever fits. A job names it in the label `kueue.x-k8s.io/queue-name`."""

    hours: HoursSpec | None = None
    """Hours in which less urgent jobs may use the pool; null: all jobs at any time. Needs `own_queue`."""


class SystemPoolSpec(Model):
    """CPU nodes for what runs the cluster: add-ons, Kueue, MLflow."""

    machine: str
    """The cloud's machine type, without an accelerator, such as `m6i.xlarge`."""

    min_nodes: Annotated[int, Field(ge=1)]
    """Fewest nodes; with two, one may fail."""

    max_nodes: Nodes
    """Most nodes."""


class InClusterMonitoring(Model):
    """Prometheus, Grafana and Alertmanager run in the cluster (docs/explanation/monitoring.md)."""

    kind: Literal["in_cluster"]
    """`in_cluster`"""

    retention_days: Days
    """How long metrics are kept, in days; less where `storage_gib` does not hold so many."""

    storage_gib: Annotated[int, Field(ge=10, le=16384)]
    """The disk of Prometheus, in GiB: the oldest metrics go when it is full."""


class NoMonitoring(Model):
    """Nothing is installed: no dashboards, and no alerts but those of the cloud."""

    kind: Literal["none"]
    """`none`"""


Monitoring = Annotated[InClusterMonitoring | NoMonitoring, Field(discriminator="kind")]
"""What watches the stack."""


class ClusterLayout(Model):
    """People share one Kubernetes cluster with GPU pools, queues and a tracking server.

    5 to 20 of them in the profile `medium`, 1 to 5 in `small-cluster`, which has other defaults.
    """

    has_cluster: ClassVar = True

    profile: Literal["medium", "small-cluster"]
    """Set by `trainstack:profile`."""

    kubernetes_version: KubernetesVersion
    """Minor version, such as `1.35`."""

    api_access: tuple[str, ...]
    """Address ranges that may reach the Kubernetes API from the internet; empty: only from inside."""

    network_cidr: Cidr
    """IPv4 range of the network: every GPU node takes an address per pod and per RDMA interface."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that the network spans."""

    idle_minutes: Annotated[int, Field(ge=5, le=240)] | None
    """How long a node may be unneeded before it is given back, in minutes; null on Google Cloud, where GKE
    decides and takes idle nodes away sooner than it does by itself."""

    idle_gpus: IdleGpusSpec | None
    """What becomes of GPUs that somebody holds and nobody uses; null: nothing."""

    admission: Literal["deny", "warn"] | None
    """Action of the API server on an object that breaks a policy (docs/reference/admission.md).

    `deny` rejects the object, `warn` warns its creator and writes to the audit log. null: `deny` in `staging`
    and `prod`, else `warn`."""

    monitoring: Monitoring
    """What watches queues, GPUs and the platform, and tells people: `{kind: in_cluster, retention_days: 30,
    storage_gib: 50}` or `{kind: none}`."""

    system_pool: SystemPoolSpec
    """The pool for everything that is not training."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """Pools of nodes for jobs."""

    @property
    def training_pools(self) -> tuple[PoolSpec, ...]:
        """Pools for training, else those for fine-tuning."""
        by_purpose = {
            purpose: tuple(pool for pool in self.pools if pool.purpose == purpose)
            for purpose in ("training", "fine_tuning")
        }
        return by_purpose["training"] or by_purpose["fine_tuning"]

    @property
    def interruptible(self) -> bool:
        """Whether the cloud may reclaim nodes of a training job."""
        return any(pool.purchase.kind in _INTERRUPTIBLE for pool in self.training_pools)

    def validated(self, named: Sequence[str] | None) -> list[str]:
        """Pools that the gate validates; by default those for training and fine-tuning."""
        return [
            pool.name
            for pool in self.pools
            if (pool.purpose in ("training", "fine_tuning") if named is None else pool.name in named)
        ]


class JobMachineSpec(Model):
    """A machine type that training jobs of a managed service may ask for."""

    name: Name
    """How people call it: `trainstack run --on l4`."""

    machine: str
    """The service's machine type, such as `ml.g6.xlarge`."""

    purchase: Annotated[OnDemand | Spot | TrainingPlan | Reserved, Field(discriminator="kind")]
    """How machines are bought where a job does not say: `{kind: on_demand}` or `{kind: spot}`. What is
    reserved no job can change: `{kind: training_plan, arn: ...}` on AWS, `{kind: reserved, id: ...}` on
    Google Cloud."""

    max_nodes: Annotated[int, Field(ge=1, le=64)]
    """Most machines of this type in one job."""

    expected_utilization: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the month that `max_nodes` machines are expected to run, for the price; 0.1 is 73 hours."""

    @property
    def reservation(self) -> str | None:
        """What reserves the machines, by its ARN or full name; None: they are bought by the hour."""
        match self.purchase:
            case TrainingPlan(arn=name) | Reserved(id=name):
                return name
        return None


class PersonSpec(Model):
    """Somebody who trains: a profile in the notebooks, a role for jobs, and on demand a budget."""

    name: Name
    """Name of the profile, and of the person in the tags of what she or he runs."""

    email: Email
    """Who is told about the person's budget; the owner of the runs."""

    team: str
    """The project that the person works for: a name of `teams`. It says which folders the jobs use."""

    monthly_usd: MonthlyUsd | None = None
    """What the person's jobs and notebooks may cost in a calendar month; null: no such budget."""

    over_budget: OverBudget = "warn"
    """`stop`: what still runs above the limit is stopped. `warn`: it is told what would have been."""


class NotebooksSpec(Model):
    """The managed notebooks of the service (on AWS: JupyterLab and Code Editor in SageMaker Studio)."""

    machines: Annotated[tuple[str, ...], Field(min_length=1)]
    """Machine types that notebooks may run on, the default first, such as `ml.t3.medium`."""

    disk_gib: Annotated[int, Field(ge=5, le=16384)]
    """Largest disk of one notebook, in GiB; it is billed until somebody deletes the notebook."""


class SmallLayout(Model):
    """1 to 5 people train with the cloud's managed service; there is no cluster."""

    has_cluster: ClassVar = False

    profile: Literal["small"]
    """Set by `trainstack:profile`."""

    network_cidr: Cidr
    """IPv4 range of the network: a machine of a job takes two addresses, a notebook up to four."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that the network spans; more of them find spot machines more often."""

    people: Annotated[tuple[PersonSpec, ...], Field(min_length=1)]
    """Who trains."""

    machines: Annotated[tuple[JobMachineSpec, ...], Field(min_length=1)]
    """Machine types that jobs may use."""

    notebooks: NotebooksSpec
    """The managed notebooks."""

    max_hours: Annotated[float, Field(gt=0)]
    """Longest run of one job, in hours."""

    idle_minutes: Annotated[int, Field(ge=60, le=525600)]
    """After how many idle minutes a notebook is switched off; people may choose less idle time, never more.
    SageMaker knows no less than 60."""

    @property
    def training_pools(self) -> tuple[PoolSpec, ...]:
        """None: jobs have machines of their own."""
        return ()

    @property
    def interruptible(self) -> bool:
        """Whether the cloud may reclaim the machines of a job."""
        return any(machine.purchase.kind == "spot" for machine in self.machines)

    def validated(self, named: Sequence[str] | None) -> list[str]:
        """Machine types that the gate validates; by default the first."""
        return list(named or (self.machines[0].name,))


class ClusterSpec(Model):
    """One of the clusters of a large stack."""

    name: Name
    """Name of the cluster."""

    region: str
    """Region of the cluster."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """GPU node pools."""


class LargeLayout(Model):
    """20 and more people share several clusters."""

    has_cluster: ClassVar = True

    profile: Literal["large"]
    """Set by `trainstack:profile`."""

    clusters: Annotated[tuple[ClusterSpec, ...], Field(min_length=1)]
    """Clusters between which jobs are distributed."""

    scheduler: Literal["kueue", "slurm"]
    """What admits and places jobs."""

    training_pools: ClassVar[tuple[PoolSpec, ...]] = ()
    interruptible: ClassVar = False

    def validated(self, _: Sequence[str] | None) -> list[str]:
        """None yet."""
        return []


Layout = Annotated[SmallLayout | ClusterLayout | LargeLayout, Field(discriminator="profile")]
"""What the stack consists of, by profile."""
