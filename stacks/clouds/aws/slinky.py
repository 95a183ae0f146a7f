"""AWS: one Slurm system in an EKS cluster, by slurm-operator, with buckets, file systems and a budget."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.aws.pools.offers import efa_charts
from components.aws.storage.tiers import AwsStorage
from components.aws.storage.volumes import lustre_source, whole_efs_source
from components.jobs.gate import JobGate
from components.jobs.login_script import LoginPodScript
from components.kubernetes.accelerators import Accelerators, AcceleratorsArgs
from components.kubernetes.offers import NodeOffer
from components.kubernetes.slurm.operator import SlurmOperator
from components.kubernetes.slurm.system import KubernetesSlurm, SlurmSystemArgs
from components.kubernetes.volumes import VolumeArgs
from infra import slurm
from infra.catalog.slurm_names import BORROW, VALIDATION
from infra.launchers.runplan import RunPlan
from infra.slurm import accounts, checks, loading, slinky
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec, RepairSpec
from infra.stackspec.aws.slinky import SYSTEM_NODES
from infra.stackspec.layouts import ClusterLayout, NoMonitoring, PoolSpec, SystemPoolSpec
from infra.stackspec.model import demanded
from infra.stackspec.slurm.layout import SlurmLayout
from stacks.clouds.aws.cluster import AwsCloud, EksCluster
from stacks.clouds.aws.pools import machine_pool
from stacks.clouds.aws.storage import AwsStore, uri
from stacks.layouts.cluster import identity
from stacks.validation import RESULTS, smoke_plan

_CODE = "slurm/code"
HOMES, FAST = "/home", "/fsx"
"""Folders of the file systems in all pods of Slurm that run work of members."""
_EFS_GIB = 1024
"""Size that the volume of homes shows; the file system grows by itself."""
_USER_HOME = [
    # Of the user that `infra.jobs.login_pod` adds.
    "user=${TRAINSTACK_USER:-trainstack} home=${TRAINSTACK_SHARED:-/home/trainstack}",
    'mkdir -p "$home" && { [ "$(id -u)" != 0 ] || chown "$user": "$home"; }',
]


class AwsSlinky:
    """The parts of the stack, in order."""

    def __init__(self, spec: StackSpec, layout: SlurmLayout, on: AwsSpec) -> None:
        # Nodes belong to Slurm: nothing else is queued on them, so repairs are few and one at a time.
        self._on = on.model_copy(
            update={
                "efa_driver": on.efa_driver or "device_plugin",
                "repair": on.repair or RepairSpec(at_once=1, stop_above=2),
            }
        )
        self._spec, self._layout = spec, layout
        self._slinky = demanded(on.slinky)
        self._cluster_layout = _cluster(layout, self._on)
        # Disks of the controller and of the accounting do not leave their zone: where both nodes are in it,
        # each takes the pods of the other.
        self._cloud = AwsCloud(spec, self._cluster_layout, self._on, system_zone=layout.zones[0])
        options = slurm.SystemOptions(version=layout.slurm_version, folder=slinky.SCRIPTS)
        offers = {pool.name: self._offered(pool) for pool in layout.pools}
        sizes = {name: (one["cpu"], one["memory_gib"] * 1024) for name, one in offers.items()}
        self._system = slinky.in_pods(slurm.system(spec, options), sizes)
        self._files = slurm.files(self._system)

    def compose(self) -> dict[str, Any]:
        """Declare the stack; its outputs are those of `infra.outputs.slurm.SlurmOutputs`."""
        spec, layout = self._spec, self._layout
        cluster = self._cloud.cluster()
        groups = self._cloud.node_groups(cluster)
        store = self._cloud.store(cluster, members_on_nodes=True)
        drivers = Accelerators(f"{spec.name}-accelerators", self._devices(), cluster.inside)
        operator = SlurmOperator(
            f"{spec.name}-operator", {"control_plane": cluster.control_plane}, cluster.inside
        )
        made = KubernetesSlurm(
            f"{spec.name}-slurm",
            self._args(store),
            cluster.after(operator, drivers, store.ready, *groups.values()),
        )
        loaded = self._accounts(cluster, made)
        return {
            **identity(spec),
            "cluster_id": cluster.name,
            "slurm_version": layout.slurm_version,
            "login_group_id": pulumi.Output.concat("kubernetes/", made.namespace, "/", made.login),
            "checkpoint_uri": store.checkpoint_uri,
            "dataset_uri": store.dataset_uri,
            "artifact_uri": store.artifact_uri,
            "partitions": [self._partition(pool) for pool in layout.pools],
            "accounts": [one.name for one in self._system.accounts],
            "budget": self._cloud.budget(),
            "smoke": [
                self._gate(pool, cluster, store.tiers, loaded)
                for pool in layout.pools
                if pool.name in spec.validated
            ],
        }

    def _devices(self) -> AcceleratorsArgs:
        gpus = [pool.name for pool in self._layout.pools if self._offered(pool)["gpus"]]
        with_efa = [pool.name for pool in self._layout.pools if pool.rdma]
        drivers = efa_charts(demanded(self._on.efa_driver), with_efa, self._cluster_layout.kubernetes_version)
        return {"gpu_pools": gpus, "drivers": drivers}

    def _offered(self, pool: PoolSpec) -> NodeOffer:
        return machine_pool(pool, self._spec.region).offer

    def _args(self, store: AwsStore) -> SlurmSystemArgs:
        mounts, volumes = self._volumes(store.tiers)
        pools = {pool.name: pool for pool in self._layout.pools}
        args: SlurmSystemArgs = {
            "cluster": self._system.cluster,
            "scripts": slinky.SCRIPTS,
            "images": self._slinky.images.model_dump(),  # type: ignore[typeddict-item]  # the same keys
            "extra_conf": slinky.extra_conf(self._system, max_jobs=self._layout.max_jobs),
            "partitions": [
                {
                    "name": one.name,
                    "nodes": one.nodes,
                    "offer": self._offered(pools[one.name]),
                    "node_conf": slinky.node_conf(one),
                    "partition_conf": slinky.partition_conf(self._system, one),
                }
                for one in self._system.partitions
            ],
            "mounts": [{"claim": claim, "folder": folder} for claim, folder in mounts.items()],
            "volumes": volumes,
            "database": {
                "size_gib": self._slinky.accounting_gib,
                "storage_class": demanded(store.disk_class),
                "protect": self._spec.data.protect,
            },
            "files": slinky.config_files(),
            "check": checks.prolog(),
            "health": checks.health(),
            "add_user": self._files["add-user.sh"],
        }
        if self._slinky.directory is not None:
            args["directory"] = self._slinky.directory.model_dump()
        return args

    def _volumes(self, tiers: AwsStorage) -> tuple[dict[str, str], dict[str, VolumeArgs]]:
        """Folders and file systems by claim."""
        mounts: dict[str, str] = {}
        volumes: dict[str, VolumeArgs] = {}
        if tiers.homes:
            source = whole_efs_source(tiers.homes.file_system_id)
            mounts["homes"], volumes["homes"] = HOMES, {"capacity_gib": _EFS_GIB, "source": source}
        shared = self._spec.data.shared_fs
        if shared and tiers.lustre:
            lustre = lustre_source(tiers.lustre)
            mounts["fast"] = FAST
            volumes["fast"] = {"capacity_gib": shared.capacity_gib, "source": lustre}
        return mounts, volumes

    def _accounts(self, cluster: EksCluster, made: KubernetesSlurm) -> LoginPodScript:
        lines = loading.loading_lines(
            accounts=self._files["accounts.sh"],
            validation=accounts.validation_script('"$user"'),
            add_user=self._files["add-user.sh"],
        )
        return LoginPodScript(
            f"{self._spec.name}-accounts",
            {
                "kubeconfig": cluster.kubeconfig,
                "system": made.login,
                "script": "\n".join([*lines, *_USER_HOME, slinky.registered(self._system)]),
            },
        )

    def _partition(self, pool: PoolSpec) -> Mapping[str, Any]:
        return {
            "name": pool.name,
            "machine": pool.machine,
            "purchase": pool.purchase.kind,
            "max_nodes": pool.max_nodes,
            "group_id": pool.name,
            "usd_per_hour": machine_pool(pool, self._spec.region).usd_per_hour,
        }

    def _gate(
        self, pool: PoolSpec, cluster: EksCluster, tiers: AwsStorage, loaded: LoginPodScript
    ) -> Mapping[str, Any]:
        """The validation of a pool by sbatch; returns fields of `infra.outputs.jobs.ValidationJob`."""
        spec, nodes = self._spec, self._spec.validated[pool.name]
        machine = machine_pool(pool, spec.region)
        (node,) = (one.machine for one in self._system.partitions if one.name == pool.name)
        gate = JobGate(
            f"{spec.name}-{pool.name}-smoke",
            {
                "service": "slinky",
                "stack": spec.name,
                "account": self._on.account_id,
                "region": spec.region,
                "run": RunPlan(
                    name="smoke",  # each attempt has its own
                    image=spec.smoke.image,
                    command=(),  # filled in by `validation`
                    nodes=nodes,
                    gpus_per_node=machine.offer["gpus"],
                    cpu=node.cpus,
                    memory_gib=node.memory_mib // 1024,
                    timeout_s=spec.smoke.timeout_s,
                ),
                "environment": {},
                "place": {
                    "partition": pool.name,
                    "account": VALIDATION,
                    "qos": BORROW,
                    "image_file": self._slinky.container,
                },
                "plan": smoke_plan(spec, machine, nodes, shared=False),
                "code_uri": uri(tiers.artifact_bucket, f"/{_CODE}"),
                "results_uri": uri(tiers.checkpoint_bucket, RESULTS),
                "accept": spec.smoke.accept,
                "start_within_s": spec.smoke.queue_timeout_s,
                "kubeconfig": cluster.kubeconfig,
                "alerts": None,
            },
            pulumi.ResourceOptions(depends_on=[tiers, loaded]),
        )
        return {"job": gate.job_name, "result_uri": gate.result_uri}


def _cluster(layout: SlurmLayout, on: AwsSpec) -> ClusterLayout:
    """The cluster of the system: no queues, no tracking, and no autoscaler beside Slurm."""
    chosen = demanded(on.slinky)
    return ClusterLayout(
        profile="medium",
        kubernetes_version=chosen.kubernetes_version,
        api_access=chosen.api_access,
        network_cidr=layout.network_cidr,
        zones=layout.zones,
        idle_minutes=None,
        idle_gpus=None,
        admission=None,
        monitoring=NoMonitoring(kind="none"),
        system_pool=SystemPoolSpec(
            machine=layout.login.machine, min_nodes=SYSTEM_NODES, max_nodes=SYSTEM_NODES + 1
        ),
        pools=layout.pools,
    )
