"""What layouts ask of clouds, and the records that parts of a stack hand on to each other.

A layout calls the methods of a cloud and passes their records on, so that the order of parts follows from the
arguments. A cloud may return richer records of its own (a cluster that remembers its network): the type
parameters prove that it gets these back, and a layout sees only what is declared here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import pulumi

from components.kubernetes.monitoring.scrapes import GpuExporterArgs
from components.kubernetes.offers import NodeOffer
from components.kubernetes.people import SubjectArgs
from components.kubernetes.queueing.quotas import FlavorArgs
from components.kubernetes.tracking.pod import GrantsArgs
from components.kubernetes.volumes import VolumeArgs
from infra.jobs.roles import JobClass
from infra.stackspec.layouts import JobMachineSpec


@dataclass(frozen=True)
class Cluster:
    """A Kubernetes cluster that takes objects."""

    name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    """A kubeconfig without a secret."""
    inside: pulumi.ResourceOptions
    """Options for what is made in the cluster: its Kubernetes provider."""
    control_plane: Sequence[str]
    """Address ranges from which the API server connects to pods."""


@dataclass(frozen=True)
class Pool:
    """Nodes of one machine type: a pool of a cluster, or a machine type of a service's jobs."""

    machine: str
    """The cloud's name of the machine type."""
    offer: NodeOffer
    """What jobs may request of one node."""
    usd_per_hour: float | None
    """Expected price of one node; None where no source gives it."""
    facts: Mapping[str, Any]
    """What is declared about a node, under the keys of a smoke plan: rates of links, peak of accelerators."""


@dataclass(frozen=True)
class NodePool(Pool):
    """A pool of a cluster."""

    labels: Mapping[str, str]
    """Labels of every node."""
    flavor: FlavorArgs
    """The pool as queues hand it out."""


@dataclass(frozen=True)
class Pools:
    """The GPU pools of a cluster."""

    by_name: Mapping[str, NodePool]
    drivers: Mapping[str, Mapping[str, Any]]
    """Charts that hand out the devices of the pools' fabrics: their values by the chart's key."""
    host_engine_port: int | None
    """Where a DCGM host engine of the cloud's own listens on every node; None where there is none."""
    ready: Sequence[pulumi.Resource]
    """The pools, and what gives them nodes when jobs ask."""
    devices_managed: bool = False
    """Whether the cloud itself hands out GPUs to pods and exports their measures."""


@dataclass(frozen=True)
class SharedFolder:
    """A folder of a shared file system, of which the object store of checkpoints gets a durable copy."""

    volume: VolumeArgs
    """The whole file system."""
    folder: str
    """The folder on the file system."""


@dataclass(frozen=True)
class Store:
    """Where data lives."""

    checkpoint_uri: pulumi.Output[str]
    dataset_uri: pulumi.Output[str]
    artifact_uri: pulumi.Output[str]
    checkpoints: SharedFolder | None
    """The fast folder in front of the checkpoints; None where training writes to the object store."""
    ready: pulumi.Resource
    homes: VolumeArgs | None = field(default=None, kw_only=True)
    """The whole file system of the homes, where their folders have to be made; None where there are none, or
    where the cloud makes them."""


@dataclass(frozen=True)
class WayIn:
    """The address of a service for browsers."""

    url: pulumi.Output[str]
    target: pulumi.Output[str]
    """The name to which the host in `url` has to point."""


@dataclass(frozen=True)
class Tracking:
    """The experiment tracking server."""

    url: pulumi.Output[str]
    """Where it listens, as pods see it."""
    namespace: pulumi.Output[str]
    admin_secret: pulumi.Output[str]
    """The secret with its first user, as the cloud's store of secrets calls it. The account `logins` of
    `components.kubernetes.tracking.logins` may read it."""
    secret_store: str
    """The program by which pods read it."""
    grants: GrantsArgs
    """How the right to do so reaches them."""
    image: str
    """Its image, which has Python and which nodes without GPUs run."""
    way_in: WayIn | None
    """Where browsers reach it; None where people forward a port."""


@dataclass(frozen=True)
class TeamData:
    """A team's part of the data: its pods use it as what they are, and no other team's can."""

    checkpoint_uri: pulumi.Output[str]
    """Where its runs write; comes with the rights to do so."""
    dataset_uri: pulumi.Output[str]
    """Where its own datasets are, which its runs read."""
    volumes: Mapping[str, VolumeArgs]
    """What its pods can mount, by name of the claim."""
    people: Sequence[SubjectArgs]
    """Its members, as the API server of the cluster knows them."""
    folders: Sequence[str] = ()
    """Folders on the shared file system that its pods write to; each has to exist before it is mounted."""
    read_folders: Sequence[str] = ()
    """Folders there that its pods only read; they have to exist, too."""
    home: str | None = None
    """Its folder on the file system of the homes, where that has to exist before it is mounted."""


@dataclass(frozen=True)
class ServiceAccount:
    """A Kubernetes service account, to which a cloud gives rights."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Alerts:
    """Where a scheduled validation reports that training got worse."""

    topic: pulumi.Output[str]
    plan: Mapping[str, pulumi.Input[Any]]
    """What the run's smoke plan says about it."""


@dataclass(frozen=True)
class ValidationAccess:
    """The rights of the pods of a validation."""

    environment: Mapping[str, str]
    """Variables by which the pods find the cloud."""
    results: pulumi.Output[str]
    """The folder of the object store with the result of each run."""
    alerts: Alerts | None
    """None without a schedule."""
    ready: Sequence[pulumi.Resource]
    copies_results: bool = False
    """Whether the pods copy results there; else the file system does, as soon as they are written."""


ClusterT = TypeVar("ClusterT", bound=Cluster)
StoreT = TypeVar("StoreT", bound=Store)


@dataclass(frozen=True)
class Alerting:
    """How people are told of alerts, and where logs of pods are kept."""

    platform: Mapping[str, pulumi.Input[Any]]
    """Those who run the platform: a receiver of Alertmanager, without its name."""
    teams: Mapping[str, Mapping[str, pulumi.Input[Any]]]
    """Teams that have people of their own, by the team's name."""
    from_log: bool
    """Whether the cloud takes alerts from the log of a pod."""
    ready: Sequence[pulumi.Resource]
    """What makes alerts arrive."""
    gpu_exporter: GpuExporterArgs | None = None
    """The cloud's own exporter of GPUs; None: that of our chart."""


class ClusterCloud(Protocol[ClusterT, StoreT]):
    """A cloud with Kubernetes clusters: what a layout made of clusters needs."""

    def cluster(self) -> ClusterT:
        """The network, the cluster and the nodes of its own services."""

    def pools(self, cluster: ClusterT) -> Pools:
        """The GPU pools, and what scales them."""

    def store(self, cluster: ClusterT) -> StoreT:
        """The object stores and file systems."""

    def tracking(self, cluster: ClusterT, store: StoreT) -> Tracking:
        """The tracking server with its database and its secrets."""

    def teams(self, cluster: ClusterT, store: StoreT) -> Mapping[str, TeamData]:
        """Members' access to the cluster, and each team's rights to its own data, by the team's name."""

    def alerting(self, cluster: ClusterT) -> Alerting:
        """Ways to the people of the platform and of teams."""

    def budget(self) -> pulumi.Output[str]:
        """The stack's budget; returns its name."""

    def validation(self, cluster: ClusterT, store: StoreT, pods: ServiceAccount) -> ValidationAccess:
        """What the pods of the validation may do, and where a scheduled one reports."""


@dataclass(frozen=True)
class JobPerson:
    """Somebody who trains, and as whom the jobs run."""

    name: str
    role: pulumi.Output[str]
    """What the cloud calls the identity of the person's notebooks, and of jobs of a class without its own;
    comes after its rights."""
    job_roles: Mapping[JobClass, pulumi.Output[str]] = field(default_factory=dict)
    """The identities of jobs, by class; each comes after its rights."""


@dataclass(frozen=True)
class JobBudget:
    """A budget that the cloud watches."""

    name: pulumi.Output[str]
    scope: str
    """stack, team or person."""
    value: str
    """The stack, the team or the person."""
    monthly_usd: float
    over_budget: str


@dataclass(frozen=True)
class JobPlace:
    """The network and the stores of jobs."""

    store: Store
    subnets: Sequence[pulumi.Input[str]]
    security_groups: Sequence[pulumi.Input[str]]
    kms_key: pulumi.Output[str] | None
    code_uri: pulumi.Output[str]
    """Where packs of code lie."""


@dataclass(frozen=True)
class JobValidation:
    """How the validation of a stack runs as a job of its service."""

    account: str
    """What the login that deploys is held against."""
    machine: Pool
    """The machine type, as a pool of them."""
    place: pulumi.Output[Mapping[str, Any]]
    """The service's part of a run plan: rights, network, where output goes."""
    environment: Mapping[str, pulumi.Input[str]]
    results: pulumi.Output[str]
    """The folder of the object store with the result of each run."""
    alerts: Alerts | None
    """Where a scheduled run reports; None without a schedule."""
    repeat: Callable[[pulumi.Output[str], pulumi.ResourceOptions], pulumi.Output[str]]
    """Repeats a request of the service at the times of the spec; returns the name of what does so."""


JobPlaceT = TypeVar("JobPlaceT", bound=JobPlace)


class JobCloud(Protocol[JobPlaceT]):
    """A cloud with a managed training service: what a layout without a cluster needs."""

    @property
    def service(self) -> Literal["sagemaker", "vertex"]:
        """The service: `sagemaker` or `vertex`."""

    def place(self) -> JobPlaceT:
        """The network, the object stores and the logs of jobs."""

    def notebooks(self, place: JobPlaceT) -> pulumi.Resource:
        """Managed notebooks for each person, which go off when they are idle."""

    def tracking(self, place: JobPlaceT) -> pulumi.Output[str]:
        """The managed MLflow; returns what its clients take as address."""

    def people(self, place: JobPlaceT, tracking: pulumi.Output[str]) -> Sequence[JobPerson]:
        """What each person may do, in the order of the spec."""

    def validation(
        self, place: JobPlaceT, tracking: pulumi.Output[str], machine: JobMachineSpec
    ) -> JobValidation:
        """A role for the validation on machines of one type, and where it runs."""

    def budgets(self, place: JobPlaceT) -> Sequence[JobBudget]:
        """Budgets of stack, teams and people, and the function that acts on them."""

    def price(self, machine: JobMachineSpec) -> float | None:
        """Dollars of one machine-hour on demand, of a reserved machine what a job adds; None: not known."""
