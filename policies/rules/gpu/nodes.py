"""Nodes with accelerators: taints, repair and preemption."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.accelerators import (
    POOLS,
    EksPool,
    GkePool,
    Pool,
    accelerated,
    all_pools,
    has_accelerators,
    pools_of,
)
from policies.rules.pools import NODE_GROUP, most_nodes, template_of, zones_of
from policies.rules.storage.buckets import GCS, S3, is_for
from policies.rules.training import if_it_trains
from policies.stack import Stack

_DIRECTORY = "aws:s3/directoryBucket:DirectoryBucket"
_FILE_SYSTEMS = (
    *("aws:fsx/lustreFileSystem:LustreFileSystem", "aws:fsx/openZfsFileSystem:OpenZfsFileSystem"),
    *("aws:efs/fileSystem:FileSystem", "gcp:filestore/instance:Instance"),
    *("gcp:lustre/instance:Instance", "gcp:parallelstore/instance:Instance"),
)
_SERVICES = ("system", "mlflow", "tracking")


@CATALOG.rule_around(
    "MLS-GPU-03",
    "high",
    POOLS,
    "A spot node is preempted with two minutes' notice: jobs restart, and services fail.",
    "Keep checkpoints in a bucket or shared file system; run services on demand.",
)
def spot_is_for_resumable_jobs(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """Preemptible nodes run jobs that resume from checkpoints, and no services."""
    for pool in pools_of(holder, stack):
        path = pool.interruptible()
        if not path:
            continue
        if pool.devices():
            if not stack.once(_keeps_checkpoints):
                message = "no bucket for checkpoints and no shared file system outlives its nodes"
                yield Violation(message, path)
        elif service := _service(pool):
            yield Violation(f"its nodes are preemptible, and it is for {service}", path)
        elif not stack.once(_on_demand):
            message = "no pool without accelerators is on demand: the cluster services run on this one"
            yield Violation(message, path)


def _keeps_checkpoints(stack: Stack) -> bool:
    if stack.all(*_FILE_SYSTEMS):
        return True
    words = stack.settings.checkpoint_words
    return any(is_for(bucket, words) for bucket in stack.all(*S3, _DIRECTORY, GCS))


def _service(pool: Pool) -> str:
    words = {pool.resource.name.rpartition("-")[2], *(str(value) for value in pool.labels().values())}
    return next((service for service in _SERVICES if service in words), "")


def _on_demand(stack: Stack) -> bool:
    return any(not pool.interruptible() and not pool.devices() for pool in stack.once(all_pools))


@CATALOG.rule_around(
    "MLS-GPU-06",
    "medium",
    POOLS,
    "A broken node stays in the cluster, is billed, and fails every job.",
    "Set nodeRepairConfig.enabled, on GKE management.autoRepair.",
    ("CIS GKE 5.5.2",),
)
def broken_nodes_are_repaired(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """The cloud replaces broken nodes of a stack for training."""
    yield from if_it_trains(stack, _left_broken(holder, stack))


def _left_broken(holder: Resource, stack: Stack) -> Iterator[Violation]:
    for pool in pools_of(holder, stack):
        if isinstance(pool, GkePool):
            # GKE repairs by default; it cannot repair machines of Flex Start.
            given = (pool.props.get("management") or {}).get("autoRepair")
            if given is False and (pool.props.get("nodeConfig") or {}).get("flexStart") is not True:
                yield Violation("broken nodes are not repaired", f"{pool.prefix}management.autoRepair")
        # EKS does not by default (EKS API Reference, NodeRepairConfig).
        elif (holder.props.get("nodeRepairConfig") or {}).get("enabled") is not True:
            yield Violation("broken nodes are not repaired", "nodeRepairConfig.enabled")


@CATALOG.rule_around(
    "MLS-GPU-12",
    "high",
    (NODE_GROUP,),
    "EC2 Auto Scaling balances a group over its zones: after a scale-down it ends a node in the fuller zone,"
    " whatever runs there.",
    "Make a node group for each zone, with one launch template and equal labels and taints.",
    ("EKS User Guide, managed-node-groups", "aws/containers-roadmap#1453"),
)
def accelerators_are_not_balanced_over_zones(group: Resource, stack: Stack) -> Iterator[Violation]:
    """A node group with accelerators is in one zone."""
    if not has_accelerators(group, stack):
        raise NotApplicableError("its machines have no accelerator")
    # One node is always in balance.
    if most_nodes(group) > 1 and len(zones := zones_of(group, "subnetIds", stack)) > 1:
        yield Violation(f"its nodes are balanced over {', '.join(sorted(zones))}", "subnetIds")


@CATALOG.rule_around(
    "MLS-GPU-07",
    "high",
    POOLS,
    "Without a taint, pods that need no accelerators fill the nodes and keep them running; jobs wait.",
    "Taint the pool with nvidia.com/gpu and NO_SCHEDULE, and add a label with its accelerator.",
)
def accelerator_nodes_are_tainted(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """Nodes with accelerators have a taint against other pods, and a label for selectors."""
    for pool in accelerated(pools_of(holder, stack)):
        if isinstance(pool, EksPool):
            if not _keeps_away(pool) and not _taints_itself(pool, stack):
                yield Violation("every pod can be placed on its nodes", "taints")
            if not pool.labels():
                yield Violation("no label identifies its nodes", "labels")
        # GKE labels nodes with their accelerator. It taints them too if the cluster has a pool without (GKE,
        # "Run GPUs in Standard node pools").
        elif not _keeps_away(pool) and not _is_beside_others(pool, stack):
            path = f"{pool.prefix}nodeConfig.taints"
            yield Violation("every pod of the cluster is placed on its nodes", path)


def _is_beside_others(pool: GkePool, stack: Stack) -> bool:
    home, others = pool.home(), stack.once(_without_accelerators)
    if error := others.get(home):
        raise error
    return home in others


def _without_accelerators(stack: Stack) -> Mapping[str, UndeterminedError | None]:
    """The clusters of GKE with a pool without accelerators; with the error if that is unknown."""
    found: dict[str, UndeterminedError | None] = {}
    for pool in stack.once(all_pools):
        if isinstance(pool, GkePool):
            try:
                if not pool.devices():
                    found[pool.home()] = None
            except UndeterminedError as error:
                found.setdefault(pool.home(), error)
    return found


def _keeps_away(pool: Pool) -> bool:
    # PREFER_NO_SCHEDULE is only a preference.
    return any(taint.get("effect") in ("NO_SCHEDULE", "NO_EXECUTE") for taint in pool.taints())


def _taints_itself(pool: EksPool, stack: Stack) -> bool:
    template = template_of(pool.resource, stack)
    data: Any = template.props.get("userData") if template is not None else None
    try:
        return b"register-with-taints" in base64.b64decode(data or "", validate=True)
    except (binascii.Error, ValueError):
        return "register-with-taints" in str(data)
