"""Interfaces between layouts and clouds, and the records that parts of a stack pass to each other.

A layout calls the methods of a cloud and passes their records on, so that the order of parts follows from the
arguments. A cloud may return richer records of its own (a cluster with its network): the type parameters
ensure that it gets these back, and a layout uses only the fields declared here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import pulumi

from components.kubernetes.gpu_sharing import SharingArgs
from components.kubernetes.monitoring.scrapes import GpuExporterArgs
from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.offers import NodeOffer
from components.kubernetes.people import SubjectArgs
from components.kubernetes.queueing.quotas import FlavorArgs
from components.kubernetes.tracking.pod import GrantsArgs
from components.kubernetes.volumes import VolumeArgs
from infra.job_roles import JobClass
from infra.stackspec.layouts import JobMachineSpec


@dataclass(frozen=True)
class Cluster:
    """A Kubernetes cluster."""

    name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    """A kubeconfig without a secret."""
    inside: pulumi.ResourceOptions
    """Options for resources in the cluster: its Kubernetes provider."""
    control_plane: PlatformNetwork
    """Paths by which the API server connects to pods."""

    def after(self, *ready: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options for resources in the cluster that are created after others."""
        return pulumi.ResourceOptions.merge(self.inside, pulumi.ResourceOptions(depends_on=[*ready]))


@dataclass(frozen=True)
class MachinePool:
    """Nodes of one machine type: a pool of a cluster, or a machine type of a service's jobs."""

    machine: str
    """Machine type of the cloud."""
    offer: NodeOffer
    """Resources that jobs may request of one node."""
    usd_per_hour: float | None
    """Expected price of one node; None if unknown."""
    facts: Mapping[str, Any]
    """Declared figures of a node by the keys of a smoke plan: rates of links, peak of accelerators."""


@dataclass(frozen=True)
class NodePool(MachinePool):
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
    """Charts of device plugins for the pools' fabrics: their values by the chart's key."""
    host_engine_port: int | None
    """Port of the cloud's own DCGM host engine on every node; None: none."""
    ready: Sequence[pulumi.Resource]
    """The pools and their autoscaler."""
    sharing: Sequence[SharingArgs] = ()
    """Ways in which pools share their GPUs, where the stack's own device plugin shares them."""
    devices_managed: bool = False
    """Whether the cloud itself runs the device plugin and exporter of GPUs."""


@dataclass(frozen=True)
class SharedFolder:
    """A folder of a shared file system, which is copied to the bucket of checkpoints."""

    volume: VolumeArgs
    """The whole file system."""
    folder: str
    """The folder on the file system."""


@dataclass(frozen=True)
class Store:
    """Buckets and file systems of a stack."""

    checkpoint_uri: pulumi.Output[str]
    dataset_uri: pulumi.Output[str]
    artifact_uri: pulumi.Output[str]
    checkpoints: SharedFolder | None
    """Folder for checkpoints on the shared file system; None where training writes to the object store."""
    ready: pulumi.Resource
    homes: VolumeArgs | None = field(default=None, kw_only=True)
    """The whole file system of the homes, where their folders must be created; None without homes, or
    where the cloud creates them."""


@dataclass(frozen=True)
class WayIn:
    """The address of a service for browsers."""

    url: pulumi.Output[str]
    target: pulumi.Output[str]
    """Target of the DNS record for the host in `url`."""


@dataclass(frozen=True)
class Tracking:
    """The experiment tracking server."""

    url: pulumi.Output[str]
    """Its URL for pods."""
    namespace: pulumi.Output[str]
    admin_secret: pulumi.Output[str]
    """Name of the cloud's secret with its first user. The account `logins` of
    `components.kubernetes.tracking.logins` may read it."""
    secret_store: str
    """The program by which pods read it."""
    grants: GrantsArgs
    """Identity by which they may read it."""
    image: str
    """Its image, with Python; runs on nodes without GPUs."""
    way_in: WayIn | None
    """Its address for browsers; None: by a port-forward."""


@dataclass(frozen=True)
class TeamData:
    """A team's part of the data, which only its pods can access, by their identity."""

    checkpoint_uri: pulumi.Output[str]
    """Checkpoints of its runs; depends on their permissions."""
    dataset_uri: pulumi.Output[str]
    """Its own datasets, which its runs read."""
    volumes: Mapping[str, VolumeArgs]
    """Volumes that its pods can mount, by claim."""
    people: Sequence[SubjectArgs]
    """Its members as subjects of the API server."""
    folders: Sequence[str] = ()
    """Folders on the shared file system that its pods write to; each must exist before it is mounted."""
    read_folders: Sequence[str] = ()
    """Folders there that its pods only read; they must exist, too."""
    home: str | None = None
    """Its folder on the file system of the homes, where that must exist before it is mounted."""


@dataclass(frozen=True)
class ServiceAccount:
    """A Kubernetes service account with permissions in the cloud."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Alerts:
    """Alert topic of a scheduled validation."""

    topic: pulumi.Output[str]
    plan: Mapping[str, pulumi.Input[Any]]
    """Its entry in the smoke plan of the run."""


@dataclass(frozen=True)
class ValidationAccess:
    """Permissions of the pods of a validation."""

    environment: Mapping[str, str]
    """Environment variables of the pods for the cloud."""
    results: pulumi.Output[str]
    """The folder of the object store with the result of each run."""
    alerts: Alerts | None
    """None without a schedule."""
    ready: Sequence[pulumi.Resource]
    copies_results: bool = False
    """Whether the pods copy results there; else the file system does, when they are written."""


ClusterT = TypeVar("ClusterT", bound=Cluster)
StoreT = TypeVar("StoreT", bound=Store)


@dataclass(frozen=True)
class Alerting:
    """Receivers of alerts, and storage of pod logs."""

    platform: Mapping[str, pulumi.Input[Any]]
    """Receiver of Alertmanager for administrators, without its name."""
    teams: Mapping[str, Mapping[str, pulumi.Input[Any]]]
    """Receivers of teams with their own addresses, by team."""
    from_log: bool
    """Whether the cloud reads alerts from the log of a pod."""
    ready: Sequence[pulumi.Resource]
    """Resources that deliver alerts."""
    gpu_exporter: GpuExporterArgs | None = None
    """The cloud's own GPU exporter; None: that of the chart."""


class ClusterCloud(Protocol[ClusterT, StoreT]):
    """A cloud with Kubernetes clusters: methods for a cluster layout."""

    def cluster(self) -> ClusterT:
        """The network, the cluster and the nodes of its own services."""

    def pools(self, cluster: ClusterT) -> Pools:
        """The GPU pools and their autoscaler."""

    def store(self, cluster: ClusterT) -> StoreT:
        """The object stores and file systems."""

    def tracking(self, cluster: ClusterT, store: StoreT) -> Tracking:
        """The tracking server with its database and its secrets."""

    def teams(self, cluster: ClusterT, store: StoreT) -> Mapping[str, TeamData]:
        """Members' access to the cluster, and each team's access to its own data, by team."""

    def alerting(self, cluster: ClusterT) -> Alerting:
        """Alert receivers of administrators and teams."""

    def budget(self) -> pulumi.Output[str]:
        """The stack's budget; returns its name."""

    def validation(self, cluster: ClusterT, store: StoreT, pods: ServiceAccount) -> ValidationAccess:
        """Permissions of the validation's pods, and the topic of a scheduled one."""


@dataclass(frozen=True)
class JobPerson:
    """A person who runs jobs, with the identities of the jobs."""

    name: str
    role: pulumi.Output[str]
    """Identity of the person's notebooks, and of jobs without their own; depends on its permissions."""
    job_roles: Mapping[JobClass, pulumi.Output[str]] = field(default_factory=dict)
    """Identities of jobs by class; each depends on its permissions."""


@dataclass(frozen=True)
class JobBudget:
    """A budget of the cloud."""

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
    """Folder of packed code."""


@dataclass(frozen=True)
class JobValidation:
    """The validation of a stack as a job of its service."""

    account: str
    """Expected account of the deployer's login."""
    machine: MachinePool
    """The machine type, as a pool of them."""
    place: pulumi.Output[Mapping[str, Any]]
    """The service's part of a run plan: identity, network, output."""
    environment: Mapping[str, pulumi.Input[str]]
    results: pulumi.Output[str]
    """The folder of the object store with the result of each run."""
    alerts: Alerts | None
    """Alert topic of a scheduled run; None without a schedule."""
    repeat: Callable[[pulumi.Output[str], pulumi.ResourceOptions], pulumi.Output[str]]
    """Schedules a request of the service; returns the name of the schedule."""


JobPlaceT = TypeVar("JobPlaceT", bound=JobPlace)


class JobCloud(Protocol[JobPlaceT]):
    """A cloud with a managed training service: methods for a layout without a cluster."""

    @property
    def service(self) -> Literal["sagemaker", "vertex"]:
        """The service: `sagemaker` or `vertex`."""

    def place(self) -> JobPlaceT:
        """The network, the object stores and the logs of jobs."""

    def notebooks(self, place: JobPlaceT) -> pulumi.Resource:
        """Managed notebooks for each person, with idle shutdown."""

    def tracking(self, place: JobPlaceT) -> pulumi.Output[str]:
        """The managed MLflow; returns its tracking URI."""

    def people(self, place: JobPlaceT, tracking: pulumi.Output[str]) -> Sequence[JobPerson]:
        """Identities and permissions of each person, in the order of the spec."""

    def validation(
        self, place: JobPlaceT, tracking: pulumi.Output[str], machine: JobMachineSpec
    ) -> JobValidation:
        """Identity and settings of the validation on machines of one type."""

    def budgets(self, place: JobPlaceT) -> Sequence[JobBudget]:
        """Budgets of stack, teams and people, and the function that enforces them."""

    def price(self, machine: JobMachineSpec) -> float | None:
        """Dollars per machine-hour on demand, for a reserved machine what a job adds; None: unknown."""
