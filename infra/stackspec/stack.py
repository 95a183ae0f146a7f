"""A whole training stack, as its owner wants it: the part that every size and every cloud shares."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from infra.naming import team_folder
from infra.stackspec.checkpoints import CheckpointSpec
from infra.stackspec.clouds import CloudSpec
from infra.stackspec.layouts import Layout
from infra.stackspec.model import Days, Email, Image, LastDay, Model, Name, Usd
from infra.stackspec.team_budgets import BudgetExemptionSpec, MonthlyGpuHours, MonthlyUsd, OverBudget

JOB_STARTUP_S = 600
"""Of a validation that is a job: the service counts pulling the image and copying code as running."""


class SharedFileSystemSpec(Model):
    """A parallel file system (Lustre) beside the GPUs, linked to the checkpoint and dataset buckets."""

    capacity_gib: Annotated[int, Field(ge=1)]
    """Capacity in GiB; on AWS 1200 or a multiple of 2400, with RDMA the step depends on the
    throughput; on Google Cloud the step depends on the throughput."""

    throughput_mb_s_per_tib: Annotated[int, Field(ge=1)]
    """Throughput per TiB in MB/s: 125, 250, 500 or 1000."""

    zone: str
    """Zone of the file system: that of the training pool, because cross-zone traffic is slow and billed."""

    rdma: bool = False
    """Whether clients may use RDMA (EFA on AWS); decided at creation, freezes the throughput afterwards."""


class DataSpec(Model):
    """Buckets, file systems and logs: what is kept, and for how long."""

    checkpoints: CheckpointSpec
    """How large checkpoints are, how often they come, which stay and for how long."""

    noncurrent_days: Days
    """After how many days an overwritten or deleted version is really gone."""

    log_retention_days: Days
    """How long logs of the control plane and of the network are kept, in days."""

    shared_fs: SharedFileSystemSpec | None
    """The fast file system for data and checkpoints; null: none, training reads from the object store."""

    homes: bool
    """Whether there is a file system for home directories and code."""

    protect: bool
    """Whether file systems, the database and the cluster refuse to be deleted."""

    on_destroy: Literal["keep", "discard"]
    """What is left when they are deleted after all. `keep`: a last snapshot of the database, daily backups of
    homes, and buckets that hold objects, which stop a destroy. `discard`: nothing."""


class TrackingSpec(Model):
    """The MLflow server."""

    image: Image
    """Image with MLflow (auth extra), the driver of its database and the client of its object store."""

    replicas: Annotated[int, Field(ge=1, le=10)]
    """Server pods."""

    workers: Annotated[int, Field(ge=1, le=16)]
    """Server processes per pod, each with its own database connections."""


class TeamSpec(Model):
    """A team: its namespace, its queue, its share and its members."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    """The team's own name; namespace and queue are its DNS form (`Vision Lab` becomes `vision-lab`)."""

    gpus: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Guaranteed GPUs per pool; what a team does not use, others may borrow until it is wanted back. Without
    a cluster nothing is guaranteed: a team is a project with a folder and a budget."""

    weight: Annotated[float, Field(gt=0)] = 1.0
    """Share of borrowed capacity in relation to the other teams."""

    members: tuple[str, ...] = ()
    """Who works in the team, as the cloud calls them; on AWS the ARNs of IAM roles or users, those of
    permission sets (`AWSReservedSSO_...`) included, on Google Cloud `user:` or `group:` and an e-mail
    address. Each is in one team; administrators are in none."""

    alert_emails: tuple[Email, ...] = ()
    """Addresses that get the alerts about the team's jobs, queue and budget; nobody: those of `budget` do."""

    monthly_usd: MonthlyUsd | None = None
    """What its GPUs may cost in a calendar month (UTC), by the hours that its jobs hold them and the prices
    of the catalog; null: no such budget. Pools without a price are not in it."""

    monthly_gpu_hours: MonthlyGpuHours | None = None
    """GPU-hours that its jobs may hold in a calendar month (UTC); null: no such budget."""

    over_budget: OverBudget = "warn"
    """`stop`: jobs that may not finish inside what is left wait; none that runs is ended. `warn`: people are
    told at 50, 80 and 100 %."""

    budget_exempt: tuple[BudgetExemptionSpec, ...] = ()
    """Jobs that start all the same."""

    folder: Name | None = None
    """Name of the team's folder in buckets and file systems; null: after the team. A team that gets another
    name keeps its data when this says its old folder."""

    @property
    def data_folder(self) -> str:
        """The team's folder. Raises ValueError when its name holds no letter or digit."""
        return self.folder or team_folder(self.name)


class BudgetSpec(Model):
    """The budget of the whole stack."""

    monthly_usd: Usd
    """Monthly budget; alarms at 50, 80 and 100 % of actual and at 100 % of forecast cost. It is the cloud's
    bill, which does not divide nodes that teams share: `teams[].monthly_usd` is about these."""

    alert_emails: Annotated[tuple[Email, ...], Field(min_length=1)]
    """Addresses that get the alarms."""

    anomaly_usd: Usd | None
    """A daily cost above its usual level by at least this much is reported as an anomaly; null: none is."""

    over_budget: OverBudget = "warn"
    """Without a cluster, `stop` stops what runs above the limit and `warn` tells what would have been. In a
    cluster nothing stops by the bill: `teams[].over_budget` is about jobs."""


class SmokeSpec(Model):
    """How the deployment is validated: a distributed training run that gates it."""

    enabled: bool
    """Whether a deployment is gated; without the gate it is unknown whether training scales."""

    pools: tuple[Name, ...] | None
    """The pools that are validated, each by a run of its own; null: those for training or fine-tuning.
    Without a cluster one of `layout.machines`; null: the first."""

    nodes: Annotated[int, Field(ge=1, le=64)]
    """Nodes of a pool that train together; with one node only scaling inside the node is measured."""

    image: Image
    """Image with Python, PyTorch and, for RDMA, the network plugin of NCCL."""

    depth: Literal["quick", "full"]
    """How much is measured: `full` adds sharded training, the data loader and longer sampling to `quick`."""

    min_scaling_efficiency: Annotated[float, Field(gt=0, le=1)]
    """Least share of the step time left after communication, 1.0 being no loss at all."""

    timeout_s: Annotated[int, Field(ge=60, le=6 * 3600)]
    """How long the run may take once it is admitted, in seconds."""

    queue_timeout_s: Annotated[int, Field(ge=60, le=24 * 3600)]
    """How long the run may wait for nodes, in seconds."""

    drain: bool = False
    """Whether the validation stops jobs of teams that borrowed its nodes, instead of waiting for them."""

    schedule: str | None
    """When the same validation runs again on the live stack, as a cron expression of five fields in UTC, or
    null: only when something is deployed. Such a run uses what is idle and makes way for everything."""

    accept: Annotated[tuple[Literal["PASS", "INCONCLUSIVE"], ...], Field(min_length=1)]
    """Verdicts that open the gate."""


class StackSpec(Model):
    """Everything a deployment needs to know; values only, no cloud objects."""

    name: Name
    """Name of the Pulumi stack, and the start of every name in it."""

    region: str
    """Region of the cloud, such as `us-east-1`."""

    owner: Email
    """Who answers for the stack; a tag on every resource."""

    cost_center: Annotated[str, Field(min_length=1, max_length=64)]
    """Who pays; a tag on every resource."""

    environment: Literal["dev", "test", "staging", "prod"]
    """What the stack is for; a tag on every resource, by which policies know what is production."""

    data_class: Literal["public", "internal", "confidential", "restricted"]
    """The strictest class of what lies in it, data and models; a tag on every resource."""

    expires_on: LastDay
    """The last day on which somebody needs the stack, such as `2027-03-31`, or `never`; a tag on every
    resource. Nothing is deleted on that day: it tells who finds the stack later whom to ask."""

    tags: dict[str, str] = Field(default_factory=dict)
    """Further tags for every resource."""

    layout: Layout
    """What the stack consists of; its keys depend on `trainstack:profile`."""

    on: CloudSpec
    """What the cloud asks besides; its keys depend on `trainstack:cloud`."""

    data: DataSpec
    """Buckets, file systems and logs."""

    tracking: TrackingSpec | None = None
    """The MLflow server of a cluster; without a cluster the cloud runs one."""

    teams: Annotated[tuple[TeamSpec, ...], Field(min_length=1)]
    """Teams that share the stack."""

    budget: BudgetSpec
    """The budget of the whole stack."""

    smoke: SmokeSpec
    """How the deployment is validated."""

    @property
    def profile(self) -> str:
        """The size of the team that the stack is made for: `small`, `small-cluster`, `medium` or `large`."""
        return self.layout.profile

    @property
    def guaranteed(self) -> Counter[str]:
        """How many GPUs teams are guaranteed, by pool."""
        return sum((Counter(team.gpus) for team in self.teams), Counter[str]())

    @property
    def validated(self) -> dict[str, int]:
        """How many nodes the gate validates, by pool, in the order of the layout; empty without a gate.

        Without a cluster the pools are machine types, of which one is validated.
        """
        if not self.smoke.enabled:
            return {}
        return dict.fromkeys(self.layout.validated(self.smoke.pools), self.smoke.nodes)

    @property
    def cloud(self) -> str:
        """Where the stack lives: `aws`, `gcp` or `existing`."""
        return self.on.cloud
