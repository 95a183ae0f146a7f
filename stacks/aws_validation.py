"""The validation of a stack on AWS: a training run on one of its pools that gates the deploy."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.aws.cluster.eks import AwsCluster
from components.aws.pod_role import AwsPodRole, secret_reader
from components.aws.storage.tiers import AwsStorage
from components.aws.tracking.server import AwsTracking
from components.aws.validation.alert_topic import AwsAlertTopic
from components.kubernetes.queueing.kueue import GATE_NAMESPACE
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.run import SERVICE_ACCOUNT
from components.kubernetes.validation.schedule import SmokeSchedule, SmokeScheduleArgs
from components.kubernetes.volumes import SharedVolume
from infra.catalog.aws import facts
from infra.catalog.aws.model import InstanceType
from infra.cost.aws import node_price
from infra.stackspec import StackSpec
from infra.stackspec.layouts import MediumLayout, PoolSpec
from smoke_training.fabric import Fabric
from stacks.nodes import cores_for_jobs, memory_for_jobs_gib

# Lustre links this folder to the checkpoint bucket: the result outlives the file system.
_CHECKPOINTS = "checkpoints"
# Pods of one validation start apart, because nodes boot and pull images apart; the first one waits this long
# for the last, within the time of the run.
_JOIN_AT_LEAST_S, _JOIN_AT_MOST_S = 120, 600
# Twice the default: NCCL sets up its first communicators without a sign of life from its ranks.
_HANG_S = 60


class AwsValidation:
    """Declares the gating Job, its repetition, the role of the pods and their claim on the checkpoints.

    `after` are the parts that have to be ready before training can be judged.
    """

    def __init__(
        self,
        spec: StackSpec,
        layout: MediumLayout,
        *,
        cluster: AwsCluster,
        storage: AwsStorage,
        tracking: AwsTracking,
        queueing: Queueing,
        pool_labels: Mapping[str, str],
        efa_driver: str,
        after: Sequence[pulumi.Resource],
        on_aws: pulumi.ResourceOptions,
        on_cluster: pulumi.ResourceOptions,
    ) -> None:
        self._spec, self._layout, self._tracking = spec, layout, tracking
        self._cluster, self._storage = cluster, storage
        self._queueing, self._on_aws, self._on_cluster = queueing, on_aws, on_cluster
        self.alerts = self._alerts()
        role, claim = self._role(), self._claim()
        args = self._args(pool_labels, efa_driver)
        if claim:
            args["pvc_name"] = claim.claim_name
            args["pvc_folder"] = _CHECKPOINTS
        options = pulumi.ResourceOptions(depends_on=[role, *after])
        merged = pulumi.ResourceOptions.merge(on_cluster, options)
        self.job = SmokeTest(f"{spec.name}-smoke", args, merged)
        self.schedule = self._schedule(args)

    def outputs(self) -> dict[str, Any]:
        """What the stack tells of its validation (`infra.outputs.Smoke`)."""
        path = self.job.result_path
        uri = (
            # Lustre exports what is written under /checkpoints to the bucket by itself.
            pulumi.Output.all(self._storage.checkpoint_bucket, path).apply(
                lambda known: f"s3://{known[0]}{known[1].removeprefix('/checkpoints')}"
            )
            if self._storage.lustre is not None
            else path
        )
        return {
            "job": self.job.job_name,
            "namespace": GATE_NAMESPACE,
            "result_uri": uri,
            # Named after the result by the run (smoke_training/record/book.py).
            "baseline_uri": pulumi.Output.from_input(uri).apply(
                lambda told: f"{told.removesuffix('.json')}.baseline.json"
            ),
            "schedule": self.schedule and self.schedule.cron_job,
            "alert_topic": self.alerts and self.alerts.topic_arn,
        }

    def _alerts(self) -> AwsAlertTopic | None:
        """Nobody waits for a scheduled validation, so what it finds has to be sent to somebody."""
        if self._spec.smoke.schedule is None:
            return None
        emails = self._spec.budget.alert_emails
        return AwsAlertTopic(f"{self._spec.name}-training-alerts", {"emails": emails}, self._on_aws)

    def _schedule(self, gate: SmokeTestArgs) -> SmokeSchedule | None:
        schedule = self._spec.smoke.schedule
        if schedule is None or self.alerts is None:
            return None
        run: SmokeTestArgs = {
            **gate,
            "queue": self._queueing.schedule_queue,
            "priority": self._queueing.schedule_priority,
        }
        args: SmokeScheduleArgs = {
            "schedule": schedule,
            "run": run,
            "alert_topic_arn": self.alerts.topic_arn,
        }
        # What has not passed the gate is not worth repeating.
        after = pulumi.ResourceOptions.merge(self._on_cluster, pulumi.ResourceOptions(depends_on=[self.job]))
        return SmokeSchedule(f"{self._spec.name}-smoke-schedule", args, after)

    def _role(self) -> AwsPodRole:
        region = self._spec.region
        return AwsPodRole(
            f"{self._spec.name}-smoke-role",
            {
                "cluster_name": self._cluster.cluster_name,
                "cluster_arn": self._cluster.cluster_arn,
                "namespace": GATE_NAMESPACE,
                "service_account": SERVICE_ACCOUNT,
                "policy": pulumi.Output.all(
                    secret_arn=self._tracking.admin_secret_arn,
                    key_arn=self._storage.kms_key_arn,
                    topic_arn=self.alerts and self.alerts.topic_arn,
                ).apply(lambda known: secret_reader(region=region, **known)),
            },
            self._on_aws,
        )

    def _claim(self) -> SharedVolume | None:
        lustre, wanted = self._storage.lustre, self._spec.data.shared_fs
        if lustre is None or wanted is None:
            return None
        return SharedVolume(
            f"{self._spec.name}-smoke-checkpoints",
            {
                "namespace": self._queueing.gate_namespace,
                "claim": _CHECKPOINTS,
                "capacity_gib": wanted.capacity_gib,
                "lustre": {
                    "file_system_id": lustre.file_system_id,
                    "dns_name": lustre.dns_name,
                    "mount_name": lustre.mount_name,
                },
            },
            self._on_cluster,
        )

    def _args(self, pool_labels: Mapping[str, str], efa_driver: str) -> SmokeTestArgs:
        wanted = self._spec.smoke
        pool = next(item for item in self._layout.pools if item.name == wanted.pool)
        machine = facts.instance_type(pool.machine)
        return {
            "namespace": self._queueing.gate_namespace,
            "queue": self._queueing.gate_queue,
            "priority": self._queueing.gate_priority,
            "plan": smoke_plan(self._spec, pool),
            "image": wanted.image,
            "nodes": wanted.nodes,
            "gpus_per_node": machine.accelerator_count,
            "efa_per_node": machine.efa_interfaces if pool.rdma else 0,
            "efa_driver": efa_driver,
            "cpu": cores_for_jobs(machine),
            "memory_gib": memory_for_jobs_gib(machine, efa=pool.rdma),
            "pool_labels": pool_labels,
            "tracking_url": self._tracking.url,
            "credentials_secret_arn": self._tracking.admin_secret_arn,
            "region": self._spec.region,
            "timeout_s": wanted.timeout_s,
            "queue_timeout_s": wanted.queue_timeout_s,
        }


def smoke_plan(spec: StackSpec, pool: PoolSpec) -> dict[str, Any]:
    """What the validation is told about the stack (schema trainstack.smoke-plan/1)."""
    wanted = spec.smoke
    price = node_price(pool, spec.region)
    machine = facts.instance_type(pool.machine)
    return {
        "stack": spec.name,
        "ranks_per_node": None,
        "instance_type": pool.machine,
        "fabric": Fabric.EFA if pool.rdma else Fabric.TCP,
        "cloud": spec.cloud,
        "region": spec.region,
        "profile": spec.profile,
        "owner": spec.owner,
        "team": "platform",
        "cost_center": spec.cost_center,
        "hourly_cost_usd": price.usd_per_hour_expected * wanted.nodes if price else None,
        "min_scaling_efficiency": wanted.min_scaling_efficiency,
        "max_straggler_slowdown": 1.15,
        # The workload brings its own table of figures; a plan states one only to override it.
        "expected_busbw_gb_s": None,
        "accept": list(wanted.accept),
        "dataset": "synthetic",
        "task": "deploy-validation",
        "join_timeout_s": max(_JOIN_AT_LEAST_S, min(_JOIN_AT_MOST_S, wanted.timeout_s // 2)),
        "hang_timeout_s": _HANG_S,
        "peak_tflops": _peak(machine),
        **_network(machine, efa=pool.rdma),
        **_storage(spec),
    }


def _network(machine: InstanceType, *, efa: bool) -> dict[str, Any]:
    """The declared rates of a node's training traffic, Gb/s; null where the catalogue cannot know them.

    Interfaces are not named: those of EFA get their names when a node boots.
    """
    if efa:
        # The devices are equal, and share what the machine has.
        rail = machine.network_gbps / machine.efa_interfaces
        return {"network_gbit_s": machine.network_gbps, "rail_gbit_s": rail}
    # Over TCP a pod uses one interface; of several cards it cannot have the sum.
    return {"network_gbit_s": machine.network_gbps if machine.network_cards == 1 else None}


def _peak(machine: InstanceType) -> dict[str, Any] | None:
    """What one accelerator can do at most; None where no source says so."""
    accelerator = facts.accelerators[machine.accelerator]
    if accelerator.dense_bf16_tflops is None:
        return None
    return {
        "value": accelerator.dense_bf16_tflops,
        "dtype": "bfloat16",
        "source": f"{accelerator.source} ({accelerator.date})",
    }


def _storage(spec: StackSpec) -> dict[str, Any]:
    """The shared file system where there is one, in the run's own folder on it.

    FSx declares the throughput of the whole file system for many streams; what one node writes in one stream
    is nowhere declared, so nodes are compared with each other.
    """
    if spec.data.shared_fs is None:
        return {}
    return {"storage": [{"name": _CHECKPOINTS, "path": "$WORK_DIR", "write_mb_s": None, "source": None}]}
