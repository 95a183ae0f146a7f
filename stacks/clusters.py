"""Records and capabilities for the stacks of several clusters behind one queue (docs/adr/0094)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pulumi

from components.engine_state import asked, reference
from components.kubernetes.clusters.dispatching import WorkerArgs
from components.kubernetes.clusters.fencing import Fencing
from components.kubernetes.clusters.worker import ManagerAccess
from components.kubernetes.people import SubjectArgs
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.tracking.pod import AgentArgs
from infra.errors import Problem, UserError
from infra.naming import team_namespace
from infra.outputs import cluster as outputs
from infra.outputs.cluster import WorkerOutputs
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterSpec, LargeLayout
from infra.stackspec.model import demanded
from infra.stackspec.several.derived import ClusterMember, digest, workers
from stacks.parts import Alerting, Cluster, ClusterT, NodePool, Pools


@dataclass(frozen=True)
class WorkerStack:
    """A cluster of the manager."""

    spec: StackSpec
    """The spec of its own stack."""
    cluster: ClusterSpec
    """Its part of the large spec."""
    place: WorkerOutputs | None
    """None in a preview before its stack is deployed."""


@dataclass(frozen=True)
class ManagerLogin:
    """The manager's program, in the API server of a worker."""

    subjects: pulumi.Input[Sequence[SubjectArgs]]
    """The program, by each of its names there."""
    fields: Mapping[str, pulumi.Input[Any]]
    """Fields of `WorkerOutputs` that the cloud of the worker knows."""
    direct: bool = False
    """True where it has the manager's permissions itself (`components.kubernetes.clusters.worker`)."""


@dataclass(frozen=True)
class DispatcherIdentity:
    """The identity of the dispatcher's pod."""

    identity_ports: Sequence[int]
    """Ports of the service that gives it."""
    workers: Sequence[WorkerArgs]
    """Connected workers, and how it logs in to them."""
    ready: Sequence[pulumi.Resource]


ClusterC_contra = TypeVar("ClusterC_contra", bound=Cluster, contravariant=True)


class WorkerCloud(Protocol[ClusterC_contra]):
    """A cloud of a worker, beside `stacks.parts.ClusterCloud`."""

    def login(self, cluster: ClusterC_contra, member: ClusterMember) -> ManagerLogin:
        """Access of the manager's program to the API server, from its network."""

    def budget(self) -> pulumi.Output[str]:
        """The budget of the worker alone, where that of the manager does not count it; returns its name."""


class ManagerCloud(Protocol[ClusterT]):
    """A cloud of a manager: methods for the layout of a manager."""

    def cluster(self) -> ClusterT:
        """The network, the cluster and the nodes of its own services."""

    def pools(self, cluster: ClusterT) -> Pools:
        """The autoscaler of the system pool."""

    def disks(self, cluster: ClusterT) -> None:
        """The class of disks for services of the platform."""

    def people(self, cluster: ClusterT) -> Mapping[str, Sequence[SubjectArgs]]:
        """Members' access to the cluster; subjects by team."""

    def alerting(self, cluster: ClusterT) -> Alerting:
        """Alert receivers of administrators and teams."""

    def agents(self) -> Sequence[AgentArgs]:
        """The services that give pods their cloud identity."""

    def records(self, worker: StackSpec) -> Mapping[str, NodePool]:
        """The pools of a worker, without labels of nodes."""

    def dispatcher(self, cluster: ClusterT, workers: Sequence[WorkerStack]) -> DispatcherIdentity:
        """Identity and network of the dispatcher."""

    def budget(self) -> pulumi.Output[str]:
        """The budget of the manager and of all workers without one of their own; returns its name."""


def worker_stacks(spec: StackSpec, layout: LargeLayout) -> list[WorkerStack]:
    """The clusters of a manager. Raises UserError as `places`."""
    specs = workers(spec, layout)
    known = places(specs)
    return [WorkerStack(specs[one.name], one, known[one.name]) for one in layout.clusters]


def places(specs: Mapping[str, StackSpec]) -> dict[str, WorkerOutputs | None]:
    """Places of the clusters, from the outputs of their stacks.

    Raises UserError in a deployment, where one is not deployed, or from another spec; a preview warns.
    """
    found: dict[str, WorkerOutputs | None] = {}
    problems = []
    for name, worker in specs.items():
        place = _place(worker.name)
        if isinstance(place, str):
            fix = f"Deploy it first: trainstack up -s {worker.name}."
            problems.append(Problem(f"stack {worker.name}", None, place, fix, code="worker-not-ready"))
        elif place.spec != digest(worker):
            rule, fix = (
                "was deployed from another spec",
                f"Deploy it first: trainstack up -s {worker.name}.",
            )
            problems.append(
                Problem(f"stack {worker.name}", place.spec, rule, fix, code="worker-of-another-spec")
            )
        found[name] = None if isinstance(place, str) else place
    if problems and not pulumi.runtime.is_dry_run():
        raise UserError(problems)
    for problem in problems:
        pulumi.log.warn(str(problem))
    return found


def _place(stack: str) -> WorkerOutputs | str:
    """The place of a worker, or why there is none."""
    try:
        exported = asked("readStackOutputs", {"name": reference(stack)})
    except Exception as error:  # the SDK has no other type
        if "unknown stack" not in str(error) and "not found" not in str(error):
            raise
        return "is not deployed"
    record = dict(exported.get(outputs.KEY) or {})
    if not record:
        return "is not deployed"
    place = record.get("worker")
    if not isinstance(place, Mapping):
        return "is no cluster of a large stack"
    if place.get("contract") != WorkerOutputs.model_fields["contract"].default:
        return f"was deployed by another version of trainstack (contract {place.get('contract')})"
    return WorkerOutputs.model_validate(place)


def joined(
    cloud: WorkerCloud[ClusterT],
    cluster: ClusterT,
    queueing: Queueing,
    spec: StackSpec,
    member: ClusterMember,
) -> Mapping[str, Any]:
    """Declare the manager's access to a worker, and its end; returns its place, and the manager's budget."""
    login = cloud.login(cluster, member)
    namespaces = [team_namespace(team.name) for team in spec.teams]
    access = ManagerAccess(
        f"{spec.name}-manager",
        {"namespaces": namespaces, "login": login.subjects, "direct": login.direct},
        cluster.after(queueing),
    )
    Fencing(
        f"{spec.name}-fencing",
        {"namespaces": namespaces, "image": demanded(spec.tracking).image},
        cluster.after(access),
    )
    place = {
        "of": member.of.name,
        "cluster": member.cluster,
        "spec": digest(spec),
        "cluster_name": cluster.name,
        **login.fields,
    }
    budget = cloud.budget() if member.has_budget else budget_name(member.of.name)
    return {"worker": place, "budget": budget}


def budget_name(stack: str) -> str:
    """Name of the budget of a stack with a cluster."""
    return f"{stack}-budget-monthly"
