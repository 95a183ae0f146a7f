"""The validation of a stack: training runs on its pools that gate the deploy, and their schedule."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.kubernetes.queueing.kueue import GATE_NAMESPACE
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.schedule import SmokeSchedule
from components.kubernetes.validation.smoke_home import SERVICE_ACCOUNT, SmokeHome
from components.kubernetes.volumes import SharedVolume
from infra.launchers.validation import CHECKPOINTS, RUNS
from infra.stackspec import StackSpec
from infra.stackspec.rules.core import BURN_MARGIN_S
from smoke_training.fabric import Fabric
from smoke_training.names import RESULT_COPIES
from stacks.parts import (
    Alerts,
    Cluster,
    MachinePool,
    NodePool,
    ServiceAccount,
    SharedFolder,
    Store,
    Tracking,
    ValidationAccess,
)

PODS = ServiceAccount(GATE_NAMESPACE, SERVICE_ACCOUNT)
RESULTS = RUNS.removeprefix(CHECKPOINTS)
"""The folder of results in the object store of checkpoints."""
_CLAIM = "checkpoints"
# Pods of a validation start at different times, as nodes boot and pull images (14 GB take ten minutes); the
# first one waits for the last for half of the run's time limit, or all but what the run itself takes.
_JOIN_AT_LEAST_S, _JOIN_AT_MOST_S, _RUN_S = 120, 1200, 300
# Twice the default: ranks send no heartbeat while NCCL sets up its first communicators.
_HANG_S = 60


def validations(
    spec: StackSpec,
    *,
    cluster: Cluster,
    pools: Mapping[str, NodePool],
    store: Store,
    tracking: Tracking,
    queueing: Queueing,
    login: pulumi.Input[str],
    access: ValidationAccess,
    after: Sequence[pulumi.Resource],
) -> Sequence[Mapping[str, Any]]:
    """Declare the gating Job of each pool that is validated, and its repetition.

    `login` is the Secret with its user of the tracking server; `after` are the parts that must be ready
    first. Returns the fields of `infra.outputs.cluster.ValidationRun` of each pool. The runs are concurrent:
    the gate has nodes for all of them, and a failure does not hide another one.
    """
    home = SmokeHome(f"{spec.name}-smoke", {"namespace": queueing.gate_namespace}, cluster.inside)
    claim = store.checkpoints and _claim(spec, cluster, queueing, store.checkpoints)
    ready = cluster.after(*access.ready, *after)
    found = []
    for name, nodes in spec.validated.items():
        pool = pools[name]
        run: SmokeTestArgs = {
            "pool": name,
            "namespace": home.namespace,
            "queue": queueing.gate_queues[name],
            "priority": queueing.gate_priority,
            "plan": smoke_plan(spec, pool, nodes, shared=store.checkpoints is not None),
            "image": spec.smoke.image,
            "watch_image": tracking.image,
            "nodes": nodes,
            "node": pool.offer,
            "pool_labels": pool.labels,
            "tracking_url": tracking.url,
            "environment": {**access.environment, **_copies(access)},
            "login_secret": login,
            "timeout_s": spec.smoke.timeout_s,
            "queue_timeout_s": spec.smoke.queue_timeout_s,
        }
        if "provisioning_class" in pool.flavor:
            run["provisioned"] = True
        if "topology" in pool.flavor:
            # The closest placement: the layer of the switch that connects the nodes.
            run["topology_level"] = pool.flavor["topology"][-2]
        if claim and store.checkpoints:
            run["pvc_name"], run["pvc_folder"] = claim.claim_name, store.checkpoints.folder
        gate = SmokeTest(f"{spec.name}-smoke-{name}", run, ready)
        run = {**run, "queue": queueing.schedule_queue, "priority": queueing.schedule_priority}
        # Only a validation that passed is repeated.
        schedule = _schedule(spec, run, access.alerts, cluster.after(gate))
        found.append(_outputs(name, gate, schedule, access))
    return found


def _outputs(
    pool: str, gate: SmokeTest, schedule: SmokeSchedule | None, access: ValidationAccess
) -> Mapping[str, Any]:
    uri = _result_uri(gate.result_path, access.results)
    return {
        "pool": pool,
        "job": gate.job_name,
        "namespace": GATE_NAMESPACE,
        "result_uri": uri,
        # Named after the result by the run (smoke_training/record/run_record.py).
        "baseline_uri": uri.apply(lambda known: f"{known.removesuffix('.json')}.baseline.json"),
        "schedule": schedule and schedule.cron_job,
        "alert_topic": access.alerts and access.alerts.topic,
    }


def _claim(spec: StackSpec, cluster: Cluster, queueing: Queueing, folder: SharedFolder) -> SharedVolume:
    return SharedVolume(
        f"{spec.name}-smoke-checkpoints",
        {"namespace": queueing.gate_namespace, "claim": _CLAIM, **folder.volume},
        cluster.inside,
    )


def _schedule(
    spec: StackSpec, run: SmokeTestArgs, alerts: Alerts | None, opts: pulumi.ResourceOptions
) -> SmokeSchedule | None:
    """The schedule; no deploy awaits its runs, so they send alerts."""
    if spec.smoke.schedule is None or alerts is None:
        return None
    return SmokeSchedule(
        f"{spec.name}-smoke-schedule-{run['pool']}",
        {"schedule": spec.smoke.schedule, "run": run, "plan": alerts.plan},
        opts,
    )


def _copies(access: ValidationAccess) -> dict[str, pulumi.Input[str]]:
    return {RESULT_COPIES: access.results} if access.copies_results else {}


def _result_uri(path: pulumi.Output[str], folder: pulumi.Output[str]) -> pulumi.Output[str]:
    return pulumi.Output.all(folder, path).apply(lambda known: f"{known[0]}{known[1].removeprefix(RUNS)}")


def smoke_plan(spec: StackSpec, pool: MachinePool, nodes: int, *, shared: bool) -> dict[str, Any]:
    """Data about the stack for a run on `nodes` nodes of a pool (schema trainstack.smoke-plan/1).

    `shared`: its folder is on a shared file system, whose declared throughput is for many streams; none is
    declared for one stream of one node, so nodes are compared with each other.
    """
    wanted = spec.smoke
    within = max(wanted.timeout_s // 2, wanted.timeout_s - _RUN_S)
    if wanted.burn_s:
        within = wanted.timeout_s - wanted.burn_s - (BURN_MARGIN_S - _JOIN_AT_LEAST_S)
    price = pool.usd_per_hour
    storage = {"name": _CLAIM, "path": "$WORK_DIR", "write_mb_s": None, "source": None}
    return {
        "stack": spec.name,
        "ranks_per_node": None,
        "instance_type": pool.machine,
        "fabric": pool.offer["fabric"]["kind"] if "fabric" in pool.offer else Fabric.TCP,
        "cloud": spec.cloud,
        "region": spec.region,
        "profile": spec.profile,
        "owner": spec.owner,
        "team": "platform",
        "cost_center": spec.cost_center,
        "hourly_cost_usd": None if price is None else price * nodes,
        "depth": wanted.depth,
        **({"burn_s": wanted.burn_s} if wanted.burn_s else {}),
        "min_scaling_efficiency": wanted.min_scaling_efficiency,
        "max_straggler_slowdown": 1.15,
        # The workload has its own table of figures; a plan has one only to override it.
        "expected_busbw_gb_s": None,
        "accept": list(wanted.accept),
        "dataset": "synthetic",
        "task": "deploy-validation",
        "join_timeout_s": max(_JOIN_AT_LEAST_S, min(_JOIN_AT_MOST_S, within)),
        "hang_timeout_s": _HANG_S,
        **pool.facts,
        **({"storage": [storage]} if shared else {}),
    }
