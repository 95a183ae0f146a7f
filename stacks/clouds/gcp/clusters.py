"""Several clusters on Google Cloud: the manager, and its access to workers (docs/adr/0099)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_gcp as gcp

from components.gcp.cluster.federated_login import GcpFederatedManagerLogin
from components.gcp.cluster.manager_login import GcpDispatcherUse, GcpManagerLogin, GcpManagerLoginArgs
from components.gcp.pod_account import METADATA_SERVER, metadata_grants
from components.kubernetes.clusters import dispatching
from components.kubernetes.clusters.dispatching import WorkerArgs
from components.kubernetes.people import SubjectArgs, user
from components.kubernetes.tracking.pod import AgentArgs
from infra.naming import dispatcher_role, large_tags
from infra.outputs.cluster import WorkerOutputs
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout
from infra.stackspec.several.derived import ClusterMember, layout_of, manager
from stacks.clouds.gcp.cluster import GcpCloud, GkeCluster
from stacks.clouds.gcp.pools import pool_records
from stacks.clouds.gcp.teams import members_on_gcp
from stacks.clusters import DispatcherIdentity, ManagerLogin, WorkerStack, joined, worker_stacks
from stacks.layouts.cluster import one_cluster
from stacks.layouts.manager import manager_of_clusters
from stacks.parts import NodePool
from stacks.providers import gcp_provider


def manager_on_gcp(spec: StackSpec, layout: LargeLayout, on: GcpSpec) -> dict[str, Any]:
    """Declare the stack of the manager."""
    own, found = manager(spec, layout), worker_stacks(spec, layout)
    return manager_of_clusters(GcpManager(own, layout_of(own), on, found), own, layout_of(own), found)


def cluster_on_gcp(
    spec: StackSpec, layout: ClusterLayout, on: GcpSpec, member: ClusterMember | None
) -> dict[str, Any]:
    """Declare the stack of one cluster, with the access of its manager, if it has one."""
    if member is None:
        return one_cluster(GcpCloud(spec, layout, on), spec, layout)
    cloud = GcpWorker(spec, layout, on, member)
    return one_cluster(cloud, spec, layout, lambda one, queues: joined(cloud, one, queues, spec, member))


class GcpWorker(GcpCloud):
    """`stacks.clusters.WorkerCloud` on Google Cloud."""

    def __init__(self, spec: StackSpec, layout: ClusterLayout, on: GcpSpec, member: ClusterMember) -> None:
        super().__init__(spec, layout, on, of=member.of.name, federated=member.is_elsewhere(spec))

    def login(self, cluster: GkeCluster, member: ClusterMember) -> ManagerLogin:
        """A service account, whose tokens the manager's dispatcher gets; the API server knows it itself.

        Tokens of accounts of the cluster do not pass its DNS endpoint.
        """
        made = self._federated(member) if member.is_elsewhere(self._spec) else self._pods(cluster, member)
        provider = {"provider": made.provider} if isinstance(made, GcpFederatedManagerLogin) else {}
        return ManagerLogin(
            subjects=pulumi.Output.all(made.email, made.unique_id).apply(_users),
            direct=True,
            fields={
                "server": cluster.gke.endpoint,
                "authority": cluster.gke.certificate_authority,
                "role": made.email,
                "network": cluster.network.network_id,
                "route_tables": {},
                **provider,
            },
        )

    def _pods(self, cluster: GkeCluster, member: ClusterMember) -> GcpManagerLogin:
        args: GcpManagerLoginArgs = {
            "stack": self._spec.name,
            "manager": member.of.name,
            "project": self._on.project,
            "namespace": dispatching.NAMESPACE,
            "service_account": dispatching.NAME,
        }
        if project_of(member.of) == self._on.project:
            args["project_number"] = once_pods_exist(self._number, cluster)
        return GcpManagerLogin(f"{self._spec.name}-login", args, self._on_gcp)

    def _federated(self, member: ClusterMember) -> GcpFederatedManagerLogin:
        return GcpFederatedManagerLogin(
            f"{self._spec.name}-login",
            {
                "stack": self._spec.name,
                "manager": member.of.name,
                "project": self._on.project,
                "project_number": self._number,
                "aws_account": aws_account(member.of),
                "aws_role": dispatcher_role(member.of.name),
            },
            self._on_gcp,
        )


class GcpManager(GcpCloud):
    """`stacks.clusters.ManagerCloud` on Google Cloud."""

    def __init__(
        self, spec: StackSpec, layout: ClusterLayout, on: GcpSpec, workers: Sequence[WorkerStack]
    ) -> None:
        super().__init__(spec, layout, on, of=spec.name)
        self._workers = workers
        self._logins: dict[str, pulumi.ProviderResource] = {}

    def disks(self, _: GkeCluster) -> None:
        """None: GKE has a class of disks by default."""

    def people(self, _: GkeCluster) -> Mapping[str, Sequence[SubjectArgs]]:
        """Members' permission to connect to clusters of the project."""
        return members_on_gcp(self._spec, self._on, self._own_bindings, self._on_gcp)

    def agents(self) -> Sequence[AgentArgs]:
        """The metadata server."""
        return metadata_grants()["agents"]

    def records(self, worker: StackSpec) -> Mapping[str, NodePool]:
        """The pools of a worker, at the prices of its region."""
        return pool_records(worker, layout_of(worker), self._on)

    def dispatcher(self, cluster: GkeCluster, workers: Sequence[WorkerStack]) -> DispatcherIdentity:
        """The accounts of workers, which the dispatcher may use: no network is connected.

        Stacks of workers in the manager's project grant it themselves.
        """
        apart = [one for one in workers if project_of(one.spec) != self._on.project]
        ready = [self._use(cluster, one, one.place) for one in apart if one.place is not None]
        logins: list[WorkerArgs] = [
            {
                "name": one.cluster.name,
                "server": one.place.server,
                "authority": one.place.authority,
                "role": one.place.role,
                "direct": True,
            }
            for one in workers
            if one.place is not None
        ]
        ports = sorted({port for _, port in METADATA_SERVER})
        return DispatcherIdentity(identity_ports=ports, workers=logins, ready=ready)

    def _use(self, cluster: GkeCluster, one: WorkerStack, place: WorkerOutputs) -> GcpDispatcherUse:
        """The right to the account of a worker in another project."""
        return GcpDispatcherUse(
            f"{self._spec.name}-to-{one.cluster.name}",
            {
                "email": place.role,
                "worker_project": project_of(one.spec),
                "project": self._on.project,
                "project_number": once_pods_exist(self._number, cluster),
                "namespace": dispatching.NAMESPACE,
                "service_account": dispatching.NAME,
            },
            pulumi.ResourceOptions(providers=[self._login(one)]),
        )

    def _login(self, one: WorkerStack) -> pulumi.ProviderResource:
        """The provider of a worker's project, made once."""
        on = one.spec.on
        assert isinstance(on, GcpSpec)
        name = f"{self._spec.name}-{one.cluster.name}-gcp"
        if name not in self._logins:
            self._logins[name] = gcp_provider(
                name,
                project=on.project,
                region=one.cluster.region,
                labels=self._labels,
                impersonate=on.impersonate,
            )
        return self._logins[name]

    def _projects_of_budget(self) -> Sequence[pulumi.Output[str]]:
        """Numbers of the projects of workers that the budget counts, read with the login of each."""
        found = {project_of(one.spec): one for one in self._workers if one.cluster.monthly_usd is None}
        found.pop(self._on.project, None)
        return [
            gcp.organizations.get_project_output(
                project_id=project, opts=pulumi.InvokeOutputOptions(provider=self._login(one))
            ).number
            for project, one in sorted(found.items(), key=lambda row: row[0])
        ]

    def _budget_labels(self) -> Mapping[str, str]:
        # A budget of Cloud Billing takes one label with one value.
        return large_tags(self._spec.name)


def project_of(spec: StackSpec) -> str:
    """The project of a stack on Google Cloud."""
    assert isinstance(spec.on, GcpSpec)
    return spec.on.project


def once_pods_exist(number: pulumi.Output[str], cluster: GkeCluster) -> pulumi.Output[str]:
    """The number of the project, once IAM accepts its pods: all its clusters have one identity pool."""
    return pulumi.Output.all(number, cluster.gke.workload_pool).apply(lambda both: str(both[0]))


def aws_account(manager: StackSpec) -> str:
    """The account of a manager on AWS, the only other cloud with a login (infra.stackspec.rules.mixed)."""
    assert isinstance(manager.on, AwsSpec)
    return manager.on.account_id


def _users(names: Sequence[str]) -> list[SubjectArgs]:
    return [user(name) for name in names]
