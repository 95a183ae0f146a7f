"""Several clusters on AWS: the manager, and its access to workers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.aws.clusters.peering import AwsPeerArgs, AwsPeering
from components.aws.clusters.roles import AwsDispatcherRole, AwsManagerLogin
from components.aws.pod_role import pod_identity
from components.aws.storage.disks import AwsDisks
from components.kubernetes.clusters import dispatching
from components.kubernetes.clusters.dispatching import WorkerArgs
from components.kubernetes.people import SubjectArgs, group
from components.kubernetes.tracking.pod import AgentArgs
from infra.naming import MANAGER_GROUP, lasting_tags, team_group
from infra.outputs.cluster import WorkerOutputs
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout
from infra.stackspec.several.derived import ClusterMember, layout_of, manager
from stacks.clouds.aws.cluster import AwsCloud, EksCluster
from stacks.clouds.aws.pools import pool_record
from stacks.clouds.aws.teams import members_on_aws
from stacks.clusters import DispatcherIdentity, ManagerLogin, WorkerStack, joined, worker_stacks
from stacks.layouts.cluster import one_cluster
from stacks.layouts.manager import manager_of_clusters
from stacks.parts import NodePool
from stacks.providers import aws_provider


def manager_on_aws(spec: StackSpec, layout: LargeLayout, on: AwsSpec) -> dict[str, Any]:
    """Declare the stack of the manager."""
    own, found = manager(spec, layout), worker_stacks(spec, layout)
    return manager_of_clusters(AwsManager(own, layout_of(own), on, found), own, layout_of(own), found)


def cluster_on_aws(
    spec: StackSpec, layout: ClusterLayout, on: AwsSpec, member: ClusterMember | None
) -> dict[str, Any]:
    """Declare the stack of one cluster, with the access of its manager, if it has one."""
    if member is None:
        return one_cluster(AwsCloud(spec, layout, on), spec, layout)
    cloud = AwsWorker(spec, layout, on, member)
    return one_cluster(cloud, spec, layout, lambda one, queues: joined(cloud, one, queues, spec, member))


class AwsWorker(AwsCloud):
    """`stacks.clusters.WorkerCloud` on AWS: a cluster whose nodes have the name of the cluster."""

    def __init__(self, spec: StackSpec, layout: ClusterLayout, on: AwsSpec, member: ClusterMember) -> None:
        super().__init__(spec, layout, on, cluster=member.cluster)

    def login(self, cluster: EksCluster, member: ClusterMember) -> ManagerLogin:
        """A role that the manager's dispatcher may assume."""
        made = AwsManagerLogin(
            f"{self._spec.name}-login",
            {
                "stack": self._spec.name,
                "manager": member.of.name,
                "manager_account": account_of(member.of),
                "cluster_name": cluster.eks.cluster_name,
                "security_group_id": cluster.eks.security_group_id,
                "manager_cidr": member.of.layout.network_cidr,
                "group": MANAGER_GROUP,
            },
            self._on_aws,
        )
        return ManagerLogin(
            subjects=[group(MANAGER_GROUP)],
            fields={
                "server": cluster.eks.endpoint,
                "authority": cluster.eks.certificate_authority,
                "role": made.role_arn,
                "network": cluster.network.vpc_id,
                "route_tables": cluster.network.private_route_tables,
            },
        )


class AwsManager(AwsCloud):
    """`stacks.clusters.ManagerCloud` on AWS."""

    def __init__(
        self, spec: StackSpec, layout: ClusterLayout, on: AwsSpec, workers: Sequence[WorkerStack]
    ) -> None:
        super().__init__(spec, layout, on)
        self._stacks = [one.spec.name for one in workers if one.cluster.monthly_usd is None]

    def disks(self, cluster: EksCluster) -> None:
        """The class of disks of Prometheus."""
        AwsDisks(f"{self._spec.name}-disks", {"key_arn": cluster.eks.disk_key_arn}, cluster.inside)

    def people(self, cluster: EksCluster) -> Mapping[str, Sequence[SubjectArgs]]:
        """Access entries of members."""
        members_on_aws(self._spec, cluster.eks, self._on_aws)
        return {team.name: [group(team_group(team.name))] for team in self._spec.teams}

    def agents(self) -> Sequence[AgentArgs]:
        """The agent of EKS Pod Identity."""
        return pod_identity(self._spec.region)["agents"]

    def records(self, worker: StackSpec) -> Mapping[str, NodePool]:
        """The pools of a worker, at the prices of its region."""
        layout = layout_of(worker)
        if isinstance(worker.on, GcpSpec):
            from stacks.clouds.gcp.pools import pool_records  # noqa: PLC0415 - seconds of its SDK

            return pool_records(worker, layout, worker.on)
        return {pool.name: pool_record(pool, self._on, {}, region=worker.region) for pool in layout.pools}

    def dispatcher(self, cluster: EksCluster, workers: Sequence[WorkerStack]) -> DispatcherIdentity:
        """The role of the dispatcher's pod, and a connection to the network of each worker on AWS."""
        placed = [(one, one.place) for one in workers if one.place is not None]
        role = AwsDispatcherRole(
            f"{self._spec.name}-dispatcher",
            {
                "stack": self._spec.name,
                "cluster_name": cluster.eks.cluster_name,
                "cluster_arn": cluster.eks.cluster_arn,
                "namespace": dispatching.NAMESPACE,
                "service_account": dispatching.NAME,
                "roles": [place.role for one, place in placed if one.spec.cloud == self._spec.cloud],
            },
            self._on_aws,
        )
        ready: list[pulumi.Resource] = [role]
        logins: list[WorkerArgs] = []
        for one, place in placed:
            if one.spec.cloud != self._spec.cloud:
                logins.append(self._elsewhere(one.cluster.name, place))
                continue
            ready.append(self._peering(cluster, one, place))
            if one.cluster.api_access:
                # In the manager's network its name has a public address, as EKS answers outside the VPC of a
                # cluster, and the ranges do not contain the addresses of the manager's NAT gateways.
                continue
            logins.append(
                {
                    "name": one.cluster.name,
                    "server": place.server,
                    "authority": place.authority,
                    "cluster": place.cluster_name,
                    "region": one.cluster.region,
                    "role": place.role,
                }
            )
        ports = sorted({agent["port"] for agent in self.agents()})
        return DispatcherIdentity(identity_ports=ports, workers=logins, ready=ready)

    def _peering(self, cluster: EksCluster, one: WorkerStack, place: WorkerOutputs) -> AwsPeering:
        """The connection to the network of a worker, also in another account."""
        peer: AwsPeerArgs = {
            "vpc_id": place.network,
            "region": one.cluster.region,
            "cidr": one.cluster.network_cidr,
            "route_tables": place.route_tables,
        }
        on = one.spec.on
        assert isinstance(on, AwsSpec)
        if on.account_id != self._on.account_id:
            # With the tags of the cluster, in whose account the cost is.
            peer["account"] = on.account_id
            peer["provider"] = aws_provider(
                f"{self._spec.name}-{one.cluster.name}-aws",
                on,
                region=one.cluster.region,
                tags={**self._launch_tags, **lasting_tags(one.spec.name)},
            )
        return AwsPeering(
            f"{self._spec.name}-to-{one.cluster.name}",
            {
                "vpc_id": cluster.network.vpc_id,
                "cidr": self._layout.network_cidr,
                "route_tables": cluster.network.private_route_tables,
                "peer": peer,
            },
            self._on_aws,
        )

    def _elsewhere(self, name: str, place: WorkerOutputs) -> WorkerArgs:
        """The login to a worker on another cloud, which admits the role by name; networks stay apart."""
        return {
            "name": name,
            "server": place.server,
            "authority": place.authority,
            "region": self._spec.region,
            "role": place.role,
            "provider": place.provider,
            "direct": True,
        }

    def _stacks_of_budget(self) -> Sequence[str]:
        return self._stacks


def account_of(spec: StackSpec) -> str:
    """The account of a stack on AWS."""
    assert isinstance(spec.on, AwsSpec)
    return spec.on.account_id
