"""Clusters of Cluster Director: ids, places, references between the parts of a cluster."""

import re
from collections.abc import Iterator
from typing import Any

from infra.catalog.gcp.director import director
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.gcp.rules.book import BOOK, block, items

_CLUSTER = "gcp:hypercomputecluster/cluster:Cluster"
_API = "googleapis/googleapis@99b25248 google/cloud/hypercomputecluster/v1/hypercompute_cluster.proto"
_PROVIDER = "GoogleCloudPlatform/magic-modules@053a8044 mmv1/products/hypercomputecluster/Cluster.yaml"
_SLURM = "orchestrator.slurm"
_DISK_GB = 10


@BOOK.rule("GCP-DIRECTOR-001", _CLUSTER, source=f"{_PROVIDER} (clusterId)")
def _id(inputs: Properties) -> Iterator[Violation]:
    """The id of a cluster is short."""
    name = inputs.get("clusterId")
    most = director.limits["cluster_id_letters"]
    if isinstance(name, str) and not re.fullmatch(rf"[a-z][a-z0-9]{{0,{most - 1}}}", name):
        yield _invalid("clusterId", f"must be 1 to {most} lower-case letters and digits, a letter first")


@BOOK.rule("GCP-DIRECTOR-002", _CLUSTER, source=f"{_API} (zone: must match that of other resources)")
def _zones(inputs: Properties) -> Iterator[Violation]:
    """All machines of a cluster are in one zone of its region."""
    region, login = (
        inputs.get("location"),
        block(inputs.get("orchestrator"), "slurm", "loginNodes").get("zone"),
    )
    for index, one in enumerate(items(inputs.get("computeResources"))):
        for kind, config in block(one.get("config")).items():
            zone = config.get("zone") if isinstance(config, dict) else None
            if not isinstance(zone, str) or UNKNOWN in (zone, login, region):
                continue
            path = f"computeResources[{index}].config.{kind}.zone"
            if zone.rpartition("-")[0] != region:
                yield _invalid(path, f"zone {zone} is not in region {region}")
            elif zone != login:
                yield _invalid(path, f"zone {zone} does not match zone {login} of the login nodes")


@BOOK.rule("GCP-DIRECTOR-003", _CLUSTER, source=f"{_API} (compute_id, node_set_ids, StorageConfig.id)")
def _references(inputs: Properties) -> Iterator[Violation]:
    """Nodesets name compute resources, partitions nodesets, and mounts storage of the cluster."""
    slurm = block(inputs.get("orchestrator"), "slurm")
    compute = {one.get("id") for one in items(inputs.get("computeResources"))}
    storage = {one.get("id") for one in items(inputs.get("storageResources"))}
    nodesets = {one.get("id") for one in items(slurm.get("nodeSets"))}
    for index, one in enumerate(items(slurm.get("nodeSets"))):
        path = f"{_SLURM}.nodeSets[{index}]"
        if one.get("computeId") and one["computeId"] not in compute:
            yield _invalid(f"{path}.computeId", f"{one['computeId']} is no compute resource of the cluster")
        yield from _mounts(path, one, storage)
    for index, one in enumerate(items(slurm.get("partitions"))):
        for at, name in enumerate(items(one.get("nodeSetIds"))):
            if name not in nodesets:
                path = f"{_SLURM}.partitions[{index}].nodeSetIds[{at}]"
                yield _invalid(path, f"{name} is no nodeset of the cluster")
    yield from _mounts(f"{_SLURM}.loginNodes", block(slurm, "loginNodes"), storage)


@BOOK.rule("GCP-DIRECTOR-004", _CLUSTER, source=f"{_API} (default_partition)")
def _default(inputs: Properties) -> Iterator[Violation]:
    """There is a default partition if and only if there are several."""
    slurm = block(inputs.get("orchestrator"), "slurm")
    names = [one.get("id") for one in items(slurm.get("partitions"))]
    chosen, path = slurm.get("defaultPartition"), f"{_SLURM}.defaultPartition"
    if chosen == UNKNOWN or not names:
        return
    if len(names) > 1 and chosen not in names:
        yield _invalid(path, "must be one of the partitions, as there are several")
    elif len(names) == 1 and chosen:
        yield _invalid(path, "must not be set with one partition")


@BOOK.rule("GCP-DIRECTOR-005", _CLUSTER, source=f"{_API} (startup_script, BootDisk.size_gb)")
def _machines(inputs: Properties) -> Iterator[Violation]:
    """Startup scripts and boot disks have the sizes that the service takes."""
    slurm = block(inputs.get("orchestrator"), "slurm")
    parts = {f"{_SLURM}.loginNodes": block(slurm, "loginNodes")}
    for index, one in enumerate(items(slurm.get("nodeSets"))):
        parts[f"{_SLURM}.nodeSets[{index}].computeInstance"] = block(one.get("computeInstance"))
    for path, part in parts.items():
        script, size = part.get("startupScript"), block(part.get("bootDisk")).get("sizeGb")
        if isinstance(script, str) and len(script.encode()) > director.limits["startup_script_bytes"]:
            yield _invalid(f"{path}.startupScript", "is larger than 256 KB")
        if isinstance(size, str) and size.isdecimal() and int(size) < _DISK_GB:
            yield _invalid(f"{path}.bootDisk.sizeGb", f"must be at least {_DISK_GB}")


def _mounts(path: str, part: dict[str, Any], storage: set[Any]) -> Iterator[Violation]:
    for index, one in enumerate(items(part.get("storageConfigs"))):
        if one.get("id") not in storage:
            at = f"{path}.storageConfigs[{index}].id"
            yield _invalid(at, f"{one.get('id')} is no storage resource of the cluster")


def _invalid(path: str, message: str) -> Violation:
    return Violation(path, message, "", "invalidArgument")
