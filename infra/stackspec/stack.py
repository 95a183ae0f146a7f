"""The spec of a training stack: settings shared by all profiles and clouds."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from infra.naming import team_folder
from infra.stackspec.checkpoints import CheckpointSpec
from infra.stackspec.clouds import CloudSpec
from infra.stackspec.clusters.shared_fs import SharedFileSystemSpec
from infra.stackspec.model import Days, Duration, Email, Image, LastDay, Model, Name, Usd
from infra.stackspec.slurm.layout import Layout
from infra.stackspec.team_budgets import BudgetExemptionSpec, MonthlyGpuHours, MonthlyUsd, OverBudget

JOB_STARTUP_S = 600
"""Startup allowance of a validation job: the service counts image pull and code copy as run time."""


class DataSpec(Model):
    """Buckets, file systems and logs, and their retention."""

    checkpoints: CheckpointSpec
    """Size, interval and retention of checkpoints."""

    noncurrent_days: Days
    """Days after which an overwritten or deleted version is permanently deleted."""

    log_retention_days: Days
    """Retention of control plane and network logs, in days."""

    shared_fs: SharedFileSystemSpec | None
    """Shared file system for data and checkpoints; null: none, jobs use the object store."""

    homes: bool
    """Whether there is a file system for home directories and code."""

    protect: bool
    """Whether file systems, the database and the cluster have deletion protection."""

    on_destroy: Literal["keep", "discard"]
    """Data kept on deletion. `keep`: a final snapshot of the database, daily backups of homes, and buckets
    with objects, which stop a destroy. `discard`: nothing."""


class TrackingSpec(Model):
    """The MLflow server."""

    image: Image
    """Image with MLflow (auth extra), the driver of its database and the client of its object store."""

    replicas: Annotated[int, Field(ge=1, le=10)]
    """Number of server pods; with two, one may fail."""

    workers: Annotated[int, Field(ge=1, le=16)]
    """Server processes per pod, each with its own database connections."""


class TeamSpec(Model):
    """A team: namespace, queue, share and members."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    """Name of the team; namespace and queue use its DNS form (`Vision Lab` becomes `vision-lab`)."""

    gpus: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Guaranteed GPUs per pool; other teams may borrow unused ones until the team needs them. Without a
    cluster there are no guarantees: a team is a project with a folder and a budget."""

    shares: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Guaranteed shares of GPUs per pool with shared GPUs: pods that take turns, or partitions. Four pods per
    GPU and three GPUs are twelve shares."""

    weight: Annotated[float, Field(gt=0)] = 1.0
    """Share of borrowed capacity in relation to the other teams."""

    members: tuple[str, ...] = ()
    """Members of the team; on AWS ARNs of IAM roles or users, including those of permission sets
    (`AWSReservedSSO_...`), on Google Cloud `user:` or `group:` and an e-mail address. Each is in one team;
    administrators are in none."""

    alert_emails: tuple[Email, ...] = ()
    """Addresses for alerts about the team's jobs, queue and budget; empty: those of `budget`."""

    monthly_usd: MonthlyUsd | None = None
    """Budget for GPUs in a calendar month (UTC), by allocated hours and the prices of the catalog; null:
    none. Pools without a price are excluded."""

    monthly_gpu_hours: MonthlyGpuHours | None = None
    """Budget of allocated GPU-hours in a calendar month (UTC), in which a share of a GPU counts as its part;
    null: none."""

    over_budget: OverBudget = "warn"
    """`stop`: jobs that could exceed the rest of the budget wait; running jobs continue. `warn`: alerts at
    50, 80 and 100 %."""

    budget_exempt: tuple[BudgetExemptionSpec, ...] = ()
    """Jobs exempt from `over_budget: stop`."""

    folder: Name | None = None
    """Name of the team's folder in buckets and file systems; null: by the team's name. A renamed team
    keeps its data if this is its old folder."""

    @property
    def guarantees(self) -> dict[str, int]:
        """Guaranteed GPUs per pool, and shares where the pool's GPUs are shared."""
        return {**self.gpus, **self.shares}

    @property
    def data_folder(self) -> str:
        """The team's folder. Raises ValueError for a name without letters or digits."""
        return self.folder or team_folder(self.name)


class BudgetSpec(Model):
    """The budget of the whole stack."""

    monthly_usd: Usd
    """Monthly budget; alarms at 50, 80 and 100 % of actual and at 100 % of forecast cost. It covers
    the cloud's bill, which does not split shared nodes by team; `teams[].monthly_usd` does."""

    alert_emails: Annotated[tuple[Email, ...], Field(min_length=1)]
    """Addresses for the alarms."""

    anomaly_usd: Usd | None
    """A daily cost at least this much above its usual level is reported as an anomaly; null: no reports."""

    over_budget: OverBudget = "warn"
    """Without a cluster: with `stop`, jobs over budget are stopped; with `warn` they are only reported. In a
    cluster, `teams[].over_budget` controls jobs instead."""


class SmokeSpec(Model):
    """Validation of the deployment by a distributed training run (the gate)."""

    enabled: bool
    """Whether a validation gates the deployment; without it, scaling of training is untested."""

    pools: tuple[Name, ...] | None
    """Validated pools, each by a separate run; null: those for training or fine-tuning. Without a cluster one
    of `layout.machines`; null: the first."""

    nodes: Annotated[int, Field(ge=1, le=64)]
    """Nodes of a pool in the run; with one node only scaling inside the node is measured."""

    image: Image
    """Image with Python, PyTorch and, for RDMA, the network plugin of NCCL."""

    depth: Literal["quick", "full", "burn"]
    """Extent: `full` adds sharded training, the data loader and longer sampling to `quick`. `burn` is
    sustained work for the time in `burn` instead: it measures no network, storage or scaling."""

    burn: Duration | None = None
    """Time of the sustained work at the depth `burn`, such as `15m` or `900s`, at least 240 s shorter than
    `timeout_s` (all but 120 s of the rest is for nodes to join); null at the other depths."""

    min_scaling_efficiency: Annotated[float, Field(gt=0, le=1)]
    """Minimum share of the step time without communication; 1.0 is no loss."""

    timeout_s: Annotated[int, Field(ge=60, le=6 * 3600)]
    """Time limit of the admitted run, in seconds."""

    queue_timeout_s: Annotated[int, Field(ge=60, le=24 * 3600)]
    """Time limit of waiting for nodes, in seconds."""

    drain: bool = False
    """Whether the validation preempts jobs of teams that borrowed its nodes, instead of waiting."""

    schedule: str | None
    """Schedule that repeats the validation on the live stack, as a cron expression of five fields in UTC;
    null: only on deployment. Such a run uses idle nodes and any other job preempts it."""

    accept: Annotated[tuple[Literal["PASS", "INCONCLUSIVE"], ...], Field(min_length=1)]
    """Verdicts that open the gate."""

    @property
    def burn_s(self) -> int | None:
        """The same as `burn`, in seconds."""
        return int(self.burn[:-1]) * {"s": 1, "m": 60, "h": 3600}[self.burn[-1]] if self.burn else None


class StackSpec(Model):
    """All settings of a deployment; values only, no cloud objects."""

    name: Name
    """Name of the Pulumi stack, and prefix of every name in it."""

    region: str
    """Region of the cloud, such as `us-east-1`."""

    owner: Email
    """Owner of the stack; a tag on every resource."""

    cost_center: Annotated[str, Field(min_length=1, max_length=64)]
    """Cost center; a tag on every resource."""

    environment: Literal["dev", "test", "staging", "prod"]
    """Environment; a tag on every resource, by which policies detect production."""

    data_class: Literal["public", "internal", "confidential", "restricted"]
    """Strictest class of its data and models; a tag on every resource."""

    expires_on: LastDay
    """Last day on which the stack is needed, such as `2027-03-31`, or `never`; a tag on every resource.
    Nothing is deleted on that day."""

    tags: dict[str, str] = Field(default_factory=dict)
    """Additional tags for every resource."""

    layout: Layout
    """Layout of the stack; its keys depend on `trainstack:profile`."""

    on: CloudSpec
    """Settings of the cloud; its keys depend on `trainstack:cloud`."""

    data: DataSpec
    """Buckets, file systems and logs."""

    tracking: TrackingSpec | None = None
    """The MLflow server of a cluster; without a cluster the cloud runs one."""

    teams: Annotated[tuple[TeamSpec, ...], Field(min_length=1)]
    """Teams that share the stack."""

    budget: BudgetSpec
    """The budget of the whole stack."""

    smoke: SmokeSpec
    """Validation of the deployment."""

    @property
    def profile(self) -> str:
        """The profile of the layout, such as `medium`."""
        return self.layout.profile

    @property
    def guaranteed(self) -> Counter[str]:
        """Guaranteed GPUs, or shares of them, of all teams, by pool."""
        return sum((Counter(team.guarantees) for team in self.teams), Counter[str]())

    @property
    def validated(self) -> dict[str, int]:
        """Nodes that the gate validates, by pool, in the order of the layout; empty without a gate.

        Without a cluster the pools are machine types, and one is validated.
        """
        if not self.smoke.enabled:
            return {}
        return dict.fromkeys(self.layout.validated(self.smoke.pools), self.smoke.nodes)

    @property
    def cloud(self) -> str:
        """Cloud of the stack: `aws`, `gcp` or `existing`."""
        return self.on.cloud
