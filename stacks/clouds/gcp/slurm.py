"""Google Cloud: one Slurm system of Cluster Director with buckets, file systems, accounts and a budget."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_gcp as gcp

from components.gcp.apis import GcpApis
from components.gcp.money.budget import GcpBudget
from components.gcp.network.vpc import GcpNetwork
from components.gcp.pools.offers import cpu_offer, link_rates, node_offer, peak_tflops
from components.gcp.slurm.accounts import GcpSlurmAccounts
from components.gcp.slurm.cluster import GcpSlurmCluster, GcpSlurmClusterArgs, NodesetArgs
from components.gcp.storage.tiers import GcpStorage
from components.jobs.gate import JobGate
from infra.catalog import slurm_names as names
from infra.catalog.gcp import fabrics, facts
from infra.catalog.gcp.deploying import apis_of_slurm
from infra.cost.gcp.cluster import pool_price
from infra.launchers.runplan import RunPlan
from infra.naming import LOGIN_TAG, gcp_labels, lasting_tags
from infra.slurm import checks, loading, plain
from infra.slurm.machines import machine
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.model import demanded
from infra.stackspec.purchases import CapacityBlock, Reserved
from infra.stackspec.slurm.layout import SlurmLayout
from stacks.clouds.gcp.currency import budget_currency
from stacks.clouds.gcp.storage import alerts_on_gcp, storage_args, uri
from stacks.clouds.tags import owners_tags
from stacks.parts import MachinePool
from stacks.providers import gcp_provider
from stacks.validation import RESULTS, smoke_plan

# There are no pods; a range for them makes the network usable for a cluster.
_PODS_PER_NODE = 32
_CODE = "slurm/code"
_DISK_TYPE = "pd-balanced"
_USER_HOME = [
    # Of the user that the startup script of every node adds.
    "user=${TRAINSTACK_USER:-trainstack} home=${TRAINSTACK_SHARED:-/home/trainstack}",
    'mkdir -p "$home" && { [ "$(id -u)" != 0 ] || chown "$user": "$home"; }',
]


class GcpSlurm:
    """The parts of the stack, in order."""

    def __init__(self, spec: StackSpec, layout: SlurmLayout, on: GcpSpec) -> None:
        self._spec, self._layout, self._on = spec, layout, on
        self._director = demanded(on.director)
        self._labels = gcp_labels({**owners_tags(spec), **lasting_tags(spec.name)})
        provider = gcp_provider(
            f"{spec.name}-gcp",
            project=on.project,
            region=spec.region,
            labels=self._labels,
            impersonate=on.impersonate,
        )
        provided = pulumi.ResourceOptions(providers=[provider])
        shared, kept = spec.data.shared_fs is not None, spec.data.on_destroy == "keep"
        apis = apis_of_slurm(shared_fs=shared, homes=spec.data.homes, kept=kept)
        switched_on = GcpApis(f"{spec.name}-apis", {"names": apis}, provided)
        self._opts = pulumi.ResourceOptions(providers=[provider], depends_on=[switched_on])
        self._number = gcp.organizations.get_project_output(
            project_id=on.project, opts=pulumi.InvokeOutputOptions(provider=provider)
        ).number

    def compose(self) -> dict[str, Any]:
        """Declare the stack; its outputs are those of `infra.outputs.slurm.SlurmOutputs`."""
        spec, layout = self._spec, self._layout
        network = self._network()
        # What bills is gone before a deletion ends at a subnetwork (see `GcpNetwork`).
        last = pulumi.ResourceOptions(depends_on=network.deleted_last)
        self._opts = pulumi.ResourceOptions.merge(self._opts, last)
        storage = self._storage(network)
        cluster = self._cluster(network, storage)
        accounts = self._accounts(cluster)
        return {
            **_identity(spec),
            "cluster_id": cluster.cluster_name,
            "slurm_version": layout.slurm_version,
            "login_group_id": cluster.login_node,
            "checkpoint_uri": uri(storage.checkpoint_bucket),
            "dataset_uri": uri(storage.dataset_bucket),
            "artifact_uri": uri(storage.artifact_bucket),
            "partitions": [self._partition(pool) for pool in layout.pools],
            "accounts": [names.account(team.name) for team in spec.teams],
            "budget": self._budget(),
            "smoke": [
                self._gate(pool, storage, accounts) for pool in layout.pools if pool.name in spec.validated
            ],
        }

    def _network(self) -> GcpNetwork:
        return GcpNetwork(
            f"{self._spec.name}-network",
            {
                "project": self._on.project,
                "region": self._spec.region,
                "cidr": self._layout.network_cidr,
                "pods_per_node": _PODS_PER_NODE,
                "flow_log_retention_days": self._spec.data.log_retention_days,
                "mtu": fabrics.primary_mtu(),
                "lustre": self._spec.data.shared_fs is not None,
            },
            self._opts,
        )

    def _storage(self, network: GcpNetwork) -> GcpStorage:
        spec, shared = self._spec, self._spec.data.shared_fs
        args = storage_args(spec, self._on, self._number, network)
        if spec.data.homes:
            args["homes"] = {
                "capacity_gib": self._on.homes_size_gib,
                "at_first": self._on.homes_gib is None,
                "client_cidrs": [network.ranges.nodes],
                "backups": spec.data.on_destroy == "keep",
            }
        if shared:
            args["lustre"] = {
                "zone": shared.zone,
                "capacity_gib": shared.capacity_gib,
                "throughput_mb_s_per_tib": shared.throughput_mb_s_per_tib,
            }
        storage = GcpStorage(f"{spec.name}-storage", args, self._opts)
        alerts_on_gcp(spec, storage, self._opts)
        return storage

    def _cluster(self, network: GcpNetwork, storage: GcpStorage) -> GcpSlurmCluster:
        spec, layout = self._spec, self._layout
        args: GcpSlurmClusterArgs = {
            "project": self._on.project,
            "region": spec.region,
            "zone": layout.zones[0],
            "cluster_id": self._director.cluster_id,
            "network_id": network.network_id,
            "subnetwork_id": network.subnetwork_id,
            "node_cidr": network.ranges.nodes,
            "login_machine": layout.login.machine,
            "login_disk_gib": layout.login.disk_gib,
            "nodesets": [_nodeset(pool) for pool in layout.pools],
            "default_partition": _default(layout.pools),
            "check": checks.prolog(),
            "labels": self._labels,
            "login_labels": gcp_labels({LOGIN_TAG[0]: LOGIN_TAG[1]}),
        }
        if storage.homes:
            place = f"projects/{self._on.project}/locations/{storage.homes.location}/instances"
            args["homes"] = pulumi.Output.concat(place, "/", storage.homes.instance)
        if storage.lustre:
            args["lustre"] = storage.lustre.instance
        return GcpSlurmCluster(f"{spec.name}-cluster", args, self._opts)

    def _accounts(self, cluster: GcpSlurmCluster) -> GcpSlurmAccounts:
        teams = [team.name for team in self._spec.teams]
        lines = loading.loading_lines(
            accounts=plain.accounts_script(teams),
            validation=plain.validation_script('"$user"'),
            add_user=plain.users_script(teams),
        )
        return GcpSlurmAccounts(
            f"{self._spec.name}-accounts",
            {
                "project": self._on.project,
                "stack": self._spec.name,
                "cluster": cluster.cluster_name,
                "script": "\n".join([*lines, *_USER_HOME]) + "\n",
            },
            self._opts,
        )

    def _budget(self) -> pulumi.Output[str]:
        wanted = self._spec.budget
        ((label, value),) = gcp_labels(lasting_tags(self._spec.name)).items()
        return GcpBudget(
            f"{self._spec.name}-budget",
            {
                "project_number": self._number,
                "billing_account": self._on.billing_account,
                "label_key": label,
                "label_value": value,
                "monthly_limit_usd": wanted.monthly_usd,
                "currency": budget_currency(self._on),
                "alert_emails": wanted.alert_emails,
            },
            self._opts,
        ).budget_name

    def _partition(self, pool: PoolSpec) -> Mapping[str, Any]:
        price = pool_price(pool, self._spec.region)
        return {
            "name": pool.name,
            "machine": pool.machine,
            "purchase": pool.purchase.kind,
            "max_nodes": pool.max_nodes,
            "group_id": pool.name,
            "usd_per_hour": price.expected if price else None,
        }

    def _gate(self, pool: PoolSpec, storage: GcpStorage, accounts: GcpSlurmAccounts) -> Mapping[str, Any]:
        """The validation of a pool by sbatch; returns fields of `infra.outputs.jobs.ValidationJob`."""
        spec, nodes = self._spec, self._spec.validated[pool.name]
        known, node = self._machine_pool(pool), machine(spec.cloud, pool.machine)
        assert node is not None  # the service has no machine type that the catalog has not
        gate = JobGate(
            f"{spec.name}-{pool.name}-smoke",
            {
                "service": "director",
                "stack": spec.name,
                "account": self._on.project,
                "region": spec.region,
                "run": RunPlan(
                    name="smoke",  # each attempt has its own
                    image=spec.smoke.image,
                    command=(),  # filled in by `validation`
                    nodes=nodes,
                    gpus_per_node=known.offer["gpus"],
                    cpu=node.cpus,
                    memory_gib=node.memory_mib // 1024,
                    timeout_s=spec.smoke.timeout_s,
                ),
                "environment": {},
                "place": {
                    "partition": pool.name,
                    "account": names.VALIDATION,
                    "image_file": self._director.container,
                },
                "plan": smoke_plan(spec, known, nodes, shared=False),
                "code_uri": uri(storage.artifact_bucket, f"/{_CODE}"),
                "results_uri": uri(storage.checkpoint_bucket, RESULTS),
                "accept": spec.smoke.accept,
                "start_within_s": spec.smoke.queue_timeout_s,
                "alerts": None,
            },
            pulumi.ResourceOptions(depends_on=[storage, accounts]),
        )
        return {"job": gate.job_name, "result_uri": gate.result_uri}

    def _machine_pool(self, pool: PoolSpec) -> MachinePool:
        """Record of a pool without Kubernetes; no source says how the service's image joins the fabric."""
        price, processors = pool_price(pool, self._spec.region), facts.cpu_type(pool.machine)
        known = dict[str, Any]()
        if processors is not None:
            offer = cpu_offer(
                processors.vcpu,
                processors.memory_gib,
                pods_per_node=_PODS_PER_NODE,
                disk_gib=pool.disk_gib,
            )
        else:
            hardware = facts.machine_type(pool.machine)
            offer = node_offer(hardware, pods_per_node=_PODS_PER_NODE, disk_gib=pool.disk_gib, rdma=False)
            known = {"peak_tflops": peak_tflops(hardware), **link_rates(hardware, rdma=pool.rdma)}
        usd = price.expected if price else None
        return MachinePool(machine=pool.machine, offer=offer, usd_per_hour=usd, facts=known)


def _nodeset(pool: PoolSpec) -> NodesetArgs:
    known = facts.machine_types.get(pool.machine)
    found: NodesetArgs = {
        "name": pool.name,
        "machine": pool.machine,
        "purchase": pool.purchase.kind,  # type: ignore[typeddict-item]  # a way that the service has
        "min_nodes": pool.min_nodes,
        "max_nodes": pool.max_nodes,
        "disk_gib": pool.disk_gib,
        "disk_type": (known.boot_disk if known else None) or _DISK_TYPE,
    }
    if isinstance(pool.purchase, Reserved | CapacityBlock):
        found["reservation"] = pool.purchase.id
    return found


def _default(pools: Sequence[PoolSpec]) -> str:
    """The partition of jobs that name none: the preferred one with GPUs that is open to every job."""
    return min(pools, key=lambda one: (one.own_queue, one.machine in facts.cpu_types, one.preference)).name


def _identity(spec: StackSpec) -> dict[str, str]:
    fields = ("cloud", "region", "profile", "owner", "cost_center")
    return {"stack": spec.name, **{field: getattr(spec, field) for field in fields}}
