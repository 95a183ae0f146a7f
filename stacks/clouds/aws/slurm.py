"""AWS: one Slurm system of AWS PCS with buckets, file systems, accounts of teams and a budget."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.aws.money.budget import AwsBudget, AwsBudgetArgs
from components.aws.network.vpc import AwsNetwork
from components.aws.slurm.accounts import AwsSlurmAccounts
from components.aws.slurm.cluster import AwsSlurmCluster
from components.aws.slurm.nodes import AwsSlurmNodes, AwsSlurmNodesArgs, AwsSlurmQueue
from components.aws.slurm.role import AwsSlurmRole
from components.aws.slurm.tracking import AwsSlurmTracking
from components.aws.slurm.user_data import FOLDER, user_data
from components.aws.storage.tiers import AwsStorage
from components.jobs.gate import JobGate
from infra import slurm
from infra.catalog.aws.pcs import pcs as catalog
from infra.catalog.slurm_names import BORROW, VALIDATION
from infra.launchers.runplan import RunPlan
from infra.naming import LOGIN_TAG, TAG_PREFIX, lasting_tags
from infra.slurm import accounts, metadata, monitoring, pcs, tracking
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.model import demanded
from infra.stackspec.purchases import CapacityBlock, Reserved
from infra.stackspec.rules.slurm import LOGIN
from infra.stackspec.slurm.layout import SlurmLayout
from stacks.clouds.aws.options import on_aws
from stacks.clouds.aws.pools import machine_pool
from stacks.clouds.aws.slurm_services import CODE, monitored, tracked
from stacks.clouds.aws.storage import storage_args, uri
from stacks.clouds.tags import owners_tags
from stacks.providers import aws_provider
from stacks.validation import RESULTS, smoke_plan

_SCRIPTS = ("prolog.sh", "epilog.sh", "health.sh")


class AwsSlurm:
    """The parts of the stack, in order."""

    def __init__(self, spec: StackSpec, layout: SlurmLayout, on: AwsSpec) -> None:
        self._spec, self._layout, self._on = spec, layout, on
        self._pcs = demanded(on.pcs)
        self._tags = {**owners_tags(spec), **lasting_tags(spec.name)}
        provider = aws_provider(f"{spec.name}-aws", on, region=spec.region, tags=self._tags)
        self._opts = on_aws(on, provider)
        options = slurm.SystemOptions(
            version=layout.slurm_version, folder=FOLDER, node_check=metadata.check(FOLDER)
        )
        self._system = slurm.system(spec, options)
        self._files = slurm.files(self._system)

    def compose(self) -> dict[str, Any]:
        """Declare the stack; its outputs are those of `infra.outputs.slurm.SlurmOutputs`."""
        spec, layout = self._spec, self._layout
        network = self._network()
        subnets = [network.private_subnet_id_by_zone[zone] for zone in layout.zones]
        role, storage = self._data(network, subnets)
        cluster = self._cluster(network, subnets[0])
        runs = tracked(spec, role, storage, self._opts)
        dashboard = monitored(spec, self._system, role, storage, self._opts)
        common: dict[str, Any] = {
            "cluster_id": cluster.cluster_id,
            "image_id": self._pcs.image_id,
            "security_group_id": network.efa_security_group_id,
            "profile_arn": role.profile_arn,
            "user_data": self._start(storage, runs),
        }
        if self._on.disk_key_arn is not None:
            common["disk_key_arn"] = self._on.disk_key_arn
        groups = {pool.name: self._nodes(pool, network, common) for pool in layout.pools}
        figures = monitoring.files(self._system, spec.region)
        reports = self._start(storage, runs, figures, monitoring.start())
        login = self._login(subnets, {**common, "user_data": reports})
        loaded = self._accounts(login, groups)
        queues = [
            AwsSlurmQueue(
                f"{spec.name}-{one.name}-queue",
                {
                    "cluster_id": cluster.cluster_id,
                    "name": one.name,
                    "groups": [groups[one.name]],
                    "settings": pcs.queue_settings(self._system, one),
                    "tags": self._tags,
                },
                # QOS in AllowQos must exist (User Guide, slurm-custom-settings-queue).
                self._after(loaded),
            )
            for one in self._system.partitions
        ]
        return {
            **_identity(spec),
            "cluster_id": cluster.cluster_id,
            "slurm_version": layout.slurm_version,
            "login_group_id": login.group_id,
            "checkpoint_uri": uri(storage.checkpoint_bucket),
            "dataset_uri": uri(storage.dataset_bucket),
            "artifact_uri": uri(storage.artifact_bucket),
            "tracking_uri": runs.arn,
            "dashboard": dashboard,
            "partitions": [self._partition(pool, groups[pool.name]) for pool in layout.pools],
            "accounts": [one.name for one in self._system.accounts],
            "budget": self._budget(),
            "smoke": [
                self._gate(pool, storage, queues) for pool in layout.pools if pool.name in spec.validated
            ],
        }

    def _after(self, *ready: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._opts, pulumi.ResourceOptions(depends_on=[*ready]))

    def _network(self) -> AwsNetwork:
        return AwsNetwork(
            f"{self._spec.name}-network",
            {
                "region": self._spec.region,
                "cidr": self._layout.network_cidr,
                "zones": self._layout.zones,
                "nat_per_zone": self._on.nat == "per_zone",
                "flow_log_retention_days": self._spec.data.log_retention_days,
                "interface_endpoints": self._on.endpoints,
            },
            self._opts,
        )

    def _data(
        self, network: AwsNetwork, subnets: Sequence[pulumi.Input[str]]
    ) -> tuple[AwsSlurmRole, AwsStorage]:
        spec, shared = self._spec, self._spec.data.shared_fs
        args = storage_args(spec, network, subnets)
        args["client_security_group_ids"] = [network.efa_security_group_id]
        args["delete_checkpoints"] = spec.data.checkpoints.in_bucket == "kept"
        if shared:
            args["lustre"] = {
                "capacity_gib": shared.capacity_gib,
                "throughput_mb_s_per_tib": shared.throughput_mb_s_per_tib,
                "subnet_id": network.private_subnet_id_by_zone[shared.zone],
                "efa": shared.rdma,
            }
        role = AwsSlurmRole(f"{spec.name}-nodes", self._opts)
        if spec.data.homes:
            args["homes_mounted_by"], args["members_on_nodes"] = role.role_name, True
        storage = AwsStorage(f"{spec.name}-storage", args, self._opts)
        role.grant(
            {
                "code_bucket_arn": storage.artifact_bucket_arn,
                "code": CODE,
                "results_bucket_arn": storage.checkpoint_bucket_arn,
                "results": RESULTS.strip("/"),
                "kms_key_arn": storage.kms_key_arn,
            }
        )
        return role, storage

    def _cluster(self, network: AwsNetwork, subnet: pulumi.Input[str]) -> AwsSlurmCluster:
        layout = self._layout
        size = self._pcs.size or catalog.size_for(layout.nodes, demanded(layout.max_jobs))
        return AwsSlurmCluster(
            f"{self._spec.name}-cluster",
            {
                "region": self._spec.region,
                "name": self._spec.name,
                "version": layout.slurm_version,
                "size": size,  # type: ignore[typeddict-item]  # a row of the catalog
                "subnet_id": subnet,
                "security_group_id": network.efa_security_group_id,
                "settings": pcs.cluster_settings(self._system),
                "idle_seconds": self._system.idle_s,
                "log_retention_days": self._spec.data.log_retention_days,
                "tags": self._tags,
            },
            self._opts,
        )

    def _start(
        self,
        storage: AwsStorage,
        runs: AwsSlurmTracking,
        files: Mapping[str, str] | None = None,
        commands: Sequence[str] = (),
    ) -> pulumi.Output[str]:
        """User data of nodes; `files` and `commands` are those of the login node alone."""
        scripts = {f"{FOLDER}/{name}": self._files[name] for name in _SCRIPTS}
        lustre, homes = storage.lustre, storage.homes
        return pulumi.Output.all(
            runs=runs.files,
            homes=homes.file_system_id if homes else None,
            dns=lustre.dns_name if lustre else None,
            mount=lustre.mount_name if lustre else None,
        ).apply(
            lambda known: user_data(
                {**scripts, **known["runs"], **(files or {})},
                commands=commands,
                homes=known["homes"],
                lustre=(known["dns"], known["mount"]) if known["dns"] else None,
            )
        )

    def _nodes(self, pool: PoolSpec, network: AwsNetwork, common: Mapping[str, Any]) -> AwsSlurmNodes:
        (partition,) = (one for one in self._system.partitions if one.name == pool.name)
        args: AwsSlurmNodesArgs = {
            **common,  # type: ignore[typeddict-item]  # the rest of them
            "name": pool.name,
            "machine": pool.machine,
            "purchase": pool.purchase.kind,
            "subnet_ids": [network.private_subnet_id_by_zone[zone] for zone in pool.zones],
            "rdma": pool.rdma,
            "min_nodes": pool.min_nodes,
            "max_nodes": pool.max_nodes,
            "disk_gib": pool.disk_gib,
            "settings": pcs.group_settings(partition),
            "tags": self._tags,
        }
        if isinstance(pool.purchase, Reserved | CapacityBlock):
            args["reservation_id"] = pool.purchase.id
        return AwsSlurmNodes(f"{self._spec.name}-{pool.name}", args, self._opts)

    def _login(self, subnets: Sequence[pulumi.Input[str]], common: Mapping[str, Any]) -> AwsSlurmNodes:
        wanted, (key, value) = self._layout.login, LOGIN_TAG
        args: AwsSlurmNodesArgs = {
            **common,  # type: ignore[typeddict-item]  # the rest of them
            "name": LOGIN,
            "machine": wanted.machine,
            "purchase": "on_demand",
            "subnet_ids": subnets,
            "rdma": False,
            "min_nodes": 1,
            "max_nodes": 1,
            "disk_gib": wanted.disk_gib,
            "settings": {},
            "tags": {**self._tags, key: value},
        }
        return AwsSlurmNodes(f"{self._spec.name}-{LOGIN}", args, self._opts)

    def _accounts(self, login: AwsSlurmNodes, groups: Mapping[str, AwsSlurmNodes]) -> AwsSlurmAccounts:
        return AwsSlurmAccounts(
            f"{self._spec.name}-accounts",
            {
                "login_group_id": login.group_id,
                "accounts": self._files["accounts.sh"],
                "validation": accounts.validation_script('"$user"'),
                "add_user": self._files["add-user.sh"],
                "tags": self._tags,
            },
            # slurmctld counts GPUs of groups that exist.
            self._after(*groups.values()),
        )

    def _budget(self) -> pulumi.Output[str]:
        wanted = self._spec.budget
        args: AwsBudgetArgs = {
            "stack_tag_key": f"{TAG_PREFIX}:stack",
            "stack_tag_value": self._spec.name,
            "monthly_limit_usd": wanted.monthly_usd,
            "alert_emails": wanted.alert_emails,
        }
        if wanted.anomaly_usd is not None:
            args["anomaly_threshold_usd"] = wanted.anomaly_usd
        return AwsBudget(f"{self._spec.name}-budget", args, self._opts).budget_name

    def _partition(self, pool: PoolSpec, group: AwsSlurmNodes) -> Mapping[str, Any]:
        return {
            "name": pool.name,
            "machine": pool.machine,
            "purchase": pool.purchase.kind,
            "max_nodes": pool.max_nodes,
            "group_id": group.group_id,
            "usd_per_hour": machine_pool(pool, self._spec.region).usd_per_hour,
        }

    def _gate(self, pool: PoolSpec, storage: AwsStorage, queues: list[AwsSlurmQueue]) -> Mapping[str, Any]:
        """The validation of a pool by sbatch; returns fields of `infra.outputs.jobs.ValidationJob`."""
        spec, nodes = self._spec, self._spec.validated[pool.name]
        machine = machine_pool(pool, spec.region)
        (node,) = (one.machine for one in self._system.partitions if one.name == pool.name)
        gate = JobGate(
            f"{spec.name}-{pool.name}-smoke",
            {
                "service": "pcs",
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
                "environment": {"MLFLOW_TRACKING_URI": tracking.ADDRESS},
                "place": {
                    "partition": pool.name,
                    "account": VALIDATION,
                    "qos": BORROW,
                    "image_file": self._pcs.container,
                },
                "plan": smoke_plan(spec, machine, nodes, shared=False),
                "code_uri": uri(storage.artifact_bucket, f"/{CODE}"),
                "results_uri": uri(storage.checkpoint_bucket, RESULTS),
                "accept": spec.smoke.accept,
                "start_within_s": spec.smoke.queue_timeout_s,
                "alerts": None,
            },
            pulumi.ResourceOptions(depends_on=[storage, *queues]),
        )
        return {"job": gate.job_name, "result_uri": gate.result_uri}


def _identity(spec: StackSpec) -> dict[str, str]:
    fields = ("cloud", "region", "profile", "owner", "cost_center")
    return {"stack": spec.name, **{field: getattr(spec, field) for field in fields}}
