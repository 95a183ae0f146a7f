"""Nodes of EKS Auto Mode."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.kubernetes.jobs import KINDS, ends_of
from policies.rules.kubernetes.objects import metadata, spec
from policies.rules.kubernetes.pods import TRAIN_JOB, PodTemplate, accelerators, templates
from policies.rules.pools import is_auto_mode
from policies.stack import Stack

_EKS, _POOL = "aws:eks/cluster:Cluster", "kubernetes:karpenter.sh/v1:NodePool"
_CLASS = "kubernetes:eks.amazonaws.com/v1:NodeClass"
# The pods of a TrainJob are those of its runtime.
_JOBS = tuple(kind for kind in KINDS if kind != TRAIN_JOB)
_POOL_LABEL, _COMPUTE = "karpenter.sh/nodepool", "eks.amazonaws.com/compute-type"
_CAPACITY = "karpenter.sh/capacity-type"
# Labels of nodes outside of Auto Mode.
_OTHER_NODES = ("eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool")
_DAY = 24 * 3600
# Maximum lifetime of a node in EKS, and its default.
_MOST_SECONDS, _USUAL_SECONDS = 21 * _DAY, 336 * 3600
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@CATALOG.rule_around(
    "MLS-GPU-10",
    "high",
    _JOBS,
    "Nodes of EKS Auto Mode are replaced after 21 days at most, after 14 by default, with their pods.",
    "Run it on a managed node group, or let podFailurePolicy ignore DisruptionTarget and resume from a"
    " checkpoint, or give it a shorter deadline; expireAfter of its pool is at most 504h.",
    (
        "EKS User Guide, automode: 21-day maximum (awsdocs/amazon-eks-user-guide@03bdcd18 automode.adoc)",
        "EKS User Guide, create-node-pool: after 336 hours (the same @01385604 create-node-pool.adoc)",
    ),
)
def jobs_end_before_the_nodes_of_auto_mode(job: Resource, stack: Stack) -> Iterator[Violation]:
    """A job with GPUs in a cluster with EKS Auto Mode ends before its nodes, or resumes on others."""
    using = [one for one in templates(job) if _asks_for_gpus(one)]
    if not using:
        raise NotApplicableError("it asks for no GPU")
    stack.once(_needs_auto_mode)
    for template in using:
        life = _life(template, stack)
        for ends in ends_of(job):
            # A job without a deadline violates MLS-K8S-06.
            seconds = float(ends.settings.get("activeDeadlineSeconds") or 0)
            if life is not None and seconds > life and not _outlives_nodes(ends.settings):
                days = f"it may run for {seconds / _DAY:g} days, its nodes for {life / _DAY:g}"
                yield Violation(days, f"{ends.path}.activeDeadlineSeconds")


def _needs_auto_mode(stack: Stack) -> None:
    if not stack.once(_lives) and not any(is_auto_mode(cluster) for cluster in stack.all(_EKS)):
        raise NotApplicableError("no nodes are of EKS Auto Mode")


def _is_of_auto_mode(pool: Resource) -> bool:
    template = (spec(pool).get("template") or {}).get("spec") or {}
    return bool((template.get("nodeClassRef") or {}).get("group") == "eks.amazonaws.com")


def _asks_for_gpus(template: PodTemplate) -> bool:
    return any(accelerators(container.get("resources")) for _, container in template.containers())


def _life(template: PodTemplate, stack: Stack) -> float | None:
    """Maximum lifetime of its nodes in seconds; None outside of Auto Mode."""
    chosen = template.spec.get("nodeSelector") or {}
    if any(label in chosen for label in _OTHER_NODES) or chosen.get(_COMPUTE, "auto") != "auto":
        return None
    if _POOL_LABEL in chosen:
        return stack.once(_lives).get(chosen[_POOL_LABEL])
    return stack.once(_longest_life)


def _lives(stack: Stack) -> dict[Any, float]:
    """Maximum lifetime of nodes in seconds, by name of the Auto Mode pool."""
    return {metadata(pool).get("name"): _expiry(pool) for pool in stack.all(_POOL) if _is_of_auto_mode(pool)}


def _longest_life(stack: Stack) -> float:
    return max(stack.once(_lives).values(), default=_USUAL_SECONDS)


def _expiry(pool: Resource) -> float:
    given = ((spec(pool).get("template") or {}).get("spec") or {}).get("expireAfter")
    if given is None:
        return _USUAL_SECONDS
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", str(given))
    # `Never` is a value of Karpenter; EKS replaces the node anyway.
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else _MOST_SECONDS
    return min(seconds, _MOST_SECONDS)


def _outlives_nodes(settings: Mapping[str, Any]) -> bool:
    rules = [rule for rule in (settings.get("podFailurePolicy") or {}).get("rules") or () if rule]
    ignored = [rule.get("onPodConditions") or () for rule in rules if rule.get("action") == "Ignore"]
    return any(one and one.get("type") == "DisruptionTarget" for conditions in ignored for one in conditions)


@CATALOG.rule_around(
    "MLS-GPU-11",
    "high",
    (_CLASS,),
    "Nodes use the reservations of a NodeClass only as capacity type reserved: without a pool that allows"
    " it, both the reservation and other nodes are billed.",
    "Add reserved to karpenter.sh/capacity-type of the pool that names the class.",
    ("EKS User Guide, auto-odcr",),
)
def reservations_of_auto_mode_are_used(nodes: Resource, stack: Stack) -> Iterator[Violation]:
    """A NodeClass with reservations has a pool that allows reserved capacity."""
    if not spec(nodes).get("capacityReservationSelectorTerms"):
        raise NotApplicableError("it names no reservation")
    pools = stack.once(_pools_by_class).get(metadata(nodes).get("name"), [])
    if not any(_takes_reserved(pool) for pool in pools):
        what = "no pool of the class allows reserved capacity" if pools else "no pool names the class"
        yield Violation(what, "spec.capacityReservationSelectorTerms")


def _pools_by_class(stack: Stack) -> dict[Any, list[Resource]]:
    found: dict[Any, list[Resource]] = {}
    for pool in filter(_is_of_auto_mode, stack.all(_POOL)):
        named = ((spec(pool).get("template") or {}).get("spec") or {}).get("nodeClassRef") or {}
        found.setdefault(named.get("name"), []).append(pool)
    return found


def _takes_reserved(pool: Resource) -> bool:
    """Return whether a pool allows reserved capacity; by default it allows every type."""
    given = ((spec(pool).get("template") or {}).get("spec") or {}).get("requirements") or ()
    types = [one for one in given if one and one.get("key") == _CAPACITY]
    return all(
        ("reserved" in (one.get("values") or ())) == (one.get("operator") == "In")
        for one in types
        if one.get("operator") in ("In", "NotIn")
    )
