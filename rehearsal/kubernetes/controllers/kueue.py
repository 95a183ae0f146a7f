"""Emulated admission by Kueue: queue, flavors, quota."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from infra import quantity
from rehearsal.core.model import Record
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.kueue_config import configuration
from rehearsal.kubernetes.rules.pods.workloads import matches
from rehearsal.workloads.scheduling import Taint, requests, tolerates
from rehearsal.workloads.translate import Object

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_GROUP = "kueue.x-k8s.io"


@dataclass(frozen=True)
class Admission:
    """Reason against starting a Job (empty: none), and node labels of its flavors."""

    reason: str = ""
    node_selector: Mapping[str, str] | None = None


def admit(cluster: KubeCluster, namespace: str, metadata: Object, spec: Object) -> Admission:
    """Kueue's decision about a Job; one without a queue, or without Kueue in the cluster, starts at once.

    Quota is checked against the whole of a queue (and what it may borrow), not against current usage.
    """
    queue = queued(cluster, metadata)
    if not queue:
        return Admission()
    local = cluster.get("LocalQueue", namespace, queue)
    if local is None:
        return Admission(f"LocalQueue {queue} doesn't exist")
    name = str((local.inputs.get("spec") or {}).get("clusterQueue"))
    shared = cluster.get("ClusterQueue", "", name)
    if shared is None:
        return Admission(f"ClusterQueue {name} doesn't exist")
    for owner, holder in ((shared, "ClusterQueue"), (local, "LocalQueue")):
        if (owner.inputs.get("spec") or {}).get("stopPolicy") not in (None, "None"):
            return Admission(f"{holder} {owner.name} is stopped")
    if reason := _closed(cluster, shared, namespace):
        return Admission(reason)
    ignored = _ignored_prefixes(cluster)
    requested = requests(spec["template"]["spec"])
    wanted = {"pods": Decimal(1)} | {
        name: amount for name, amount in requested.items() if not name.startswith(ignored)
    }
    count = int(spec.get("parallelism") or 1)
    return _assign(cluster, shared, {resource: amount * count for resource, amount in wanted.items()}, spec)


def queued(cluster: KubeCluster, metadata: Object) -> str:
    """The queue in which a Job waits while Kueue controls its suspension. Empty for none."""
    queue = (metadata.get("labels") or {}).get(QUEUE_LABEL)
    return str(queue) if queue and any(crd.group == _GROUP for crd in cluster.crds()) else ""


def _closed(cluster: KubeCluster, queue: Record, namespace: str) -> str:
    """The reason why a ClusterQueue accepts nothing from a namespace; empty when it does."""
    if _cyclic(cluster, queue):
        return f"ClusterQueue {queue.name} is inactive: its cohort has a cycle"
    if not _selects(cluster, queue, namespace):
        return f"Workload namespace doesn't match ClusterQueue {queue.name}'s namespaceSelector"
    return ""


def _cyclic(cluster: KubeCluster, queue: Record) -> bool:
    """Return whether the cohorts above a queue form a cycle, which stops all their members.

    Source: `CohortSpec.parentName` in apis/kueue/v1beta2/cohort_types.go (v0.19.2).
    """
    seen: set[str] = set()
    cohort = (queue.inputs.get("spec") or {}).get("cohortName")
    while cohort and cohort not in seen:
        seen.add(cohort)
        record = cluster.get("Cohort", "", cohort)
        cohort = (record.inputs.get("spec") or {}).get("parentName") if record else None
    return bool(cohort)


def _ignored_prefixes(cluster: KubeCluster) -> tuple[str, ...]:
    """Resource prefixes that the controller is configured to ignore."""
    resources = (configuration(cluster.releases()) or {}).get("resources") or {}
    return tuple(resources.get("excludeResourcePrefixes") or ())


def _selects(cluster: KubeCluster, queue: Record, namespace: str) -> bool:
    """Return whether a ClusterQueue accepts workloads of a namespace; without a selector it accepts none."""
    selector = (queue.inputs.get("spec") or {}).get("namespaceSelector")
    if selector is None:
        return False
    record = cluster.get("Namespace", "", namespace)
    found = (record.inputs.get("metadata") or {}).get("labels") or {} if record else {}
    labels = {**found, "kubernetes.io/metadata.name": namespace}
    return matches(selector, labels)


def _assign(cluster: KubeCluster, queue: Record, wanted: Mapping[str, Decimal], spec: Object) -> Admission:
    """A flavor for every resource group, or the reason why there is none."""
    groups = (queue.inputs.get("spec") or {}).get("resourceGroups") or ()
    covered = {resource for group in groups for resource in group.get("coveredResources") or ()}
    undeclared = sorted(set(wanted) - covered - {"pods"})
    if undeclared:
        return Admission(
            f"couldn't assign flavors to pod set main: resource {undeclared[0]} unavailable in ClusterQueue"
        )
    selector: dict[str, str] = {}
    for group in groups:
        requested = {name: wanted[name] for name in group["coveredResources"] if name in wanted}
        if not requested:
            continue
        reasons = []
        for flavor in group.get("flavors") or ():
            labels, reason = _flavor(cluster, queue, flavor, requested, spec)
            if not reason:
                selector.update(labels)
                break
            reasons.append(reason)
        else:
            return Admission("couldn't assign flavors to pod set main: " + ", ".join(reasons))
    return Admission(node_selector=selector)


def _flavor(
    cluster: KubeCluster, queue: Record, flavor: Object, requested: Mapping[str, Decimal], spec: Object
) -> tuple[dict[str, str], str]:
    record = cluster.get("ResourceFlavor", "", flavor["name"])
    if record is None:
        return {}, f"flavor {flavor['name']} not found"
    facts = record.inputs.get("spec") or {}
    pod = spec["template"]["spec"]
    tolerations = [*(pod.get("tolerations") or ()), *(facts.get("tolerations") or ())]
    for row in facts.get("nodeTaints") or ():
        taint = Taint(row["key"], row.get("value") or "", row["effect"])
        if taint.effect != "PreferNoSchedule" and not tolerates(tolerations, taint):
            return {}, f"untolerated taint {taint} in flavor {flavor['name']}"
    labels = {str(key): str(value) for key, value in (facts.get("nodeLabels") or {}).items()}
    own = pod.get("nodeSelector") or {}
    if any(key in own and own[key] != value for key, value in labels.items()):
        return {}, f"flavor {flavor['name']} doesn't match node affinity"
    quotas = {row["name"]: row for row in flavor.get("resources") or ()}
    for name, amount in requested.items():
        if amount > _reachable(cluster, queue, flavor["name"], name, quotas.get(name) or {}):
            return {}, f"insufficient quota for {name} in flavor {flavor['name']}, request > maximum capacity"
    return labels, ""


def _reachable(cluster: KubeCluster, queue: Record, flavor: str, resource: str, row: Object) -> Decimal:
    """Quota of a queue, plus what it may borrow from its cohort."""
    own = quantity.parse(row.get("nominalQuota") or 0)
    cohort = (queue.inputs.get("spec") or {}).get("cohortName")
    if not cohort:
        return own
    others = sum(
        (_lendable(other) for other in _quotas(cluster, cohort, flavor, resource, queue.name)), Decimal(0)
    )
    limit = row.get("borrowingLimit")
    return own + (others if limit is None else min(others, quantity.parse(limit)))


def _quotas(
    cluster: KubeCluster, cohort: str, flavor: str, resource: str, without: str
) -> Iterator[Mapping[str, Any]]:
    """Quotas of the cohort and its other queues for one resource of one flavor."""
    for record in (*cluster.objects("ClusterQueue"), *cluster.objects("Cohort")):
        spec = record.inputs.get("spec") or {}
        member = (
            record.name == cohort if record.type.endswith(":Cohort") else spec.get("cohortName") == cohort
        )
        if not member or (record.name == without and record.type.endswith(":ClusterQueue")):
            continue
        for group in spec.get("resourceGroups") or ():
            for row in group.get("flavors") or ():
                if row["name"] == flavor:
                    yield from (item for item in row.get("resources") or () if item["name"] == resource)


def _lendable(row: Mapping[str, Any]) -> Decimal:
    nominal = quantity.parse(row.get("nominalQuota") or 0)
    limit = row.get("lendingLimit")
    return nominal if limit is None else min(nominal, quantity.parse(limit))
