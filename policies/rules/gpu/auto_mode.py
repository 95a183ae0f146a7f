"""Nodes that EKS Auto Mode starts and ends by itself."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
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
# Chosen by labels of nodes that Auto Mode does not start.
_OTHER_NODES = ("eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool")
_DAY = 24 * 3600
# When EKS ends a node at the latest, and when its pool does not say.
_MOST_SECONDS, _USUAL_SECONDS = 21 * _DAY, 336 * 3600
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@CATALOGUE.rule_around(
    About(
        "MLS-GPU-10",
        "high",
        _JOBS,
        "Nodes of EKS Auto Mode end after 21 days at most, after 14 if nobody says, with what runs on them.",
        "Run it on a managed node group, or let podFailurePolicy ignore DisruptionTarget and go on from a"
        " checkpoint, or give it a shorter deadline; expireAfter of its pool is at most 504h.",
        (
            "EKS User Guide, automode: 21-day maximum (awsdocs/amazon-eks-user-guide@03bdcd18 automode.adoc)",
            "EKS User Guide, create-node-pool: after 336 hours (the same @01385604 create-node-pool.adoc)",
        ),
    )
)
def jobs_end_before_the_nodes_of_auto_mode(job: Resource, stack: Stack) -> Iterator[Violation]:
    """A job with GPUs in a cluster with EKS Auto Mode ends before its nodes do, or goes on on others."""
    using = [one for one in templates(job) if _asks_for_gpus(one)]
    if not using:
        raise NotApplicableError("it asks for no GPU")
    stack.once(_needs_auto_mode)
    for template in using:
        life = _life(template, stack)
        for ends in ends_of(job):
            # One without a deadline has another rule: MLS-K8S-06.
            seconds = float(ends.says.get("activeDeadlineSeconds") or 0)
            if life is not None and seconds > life and not _outlives_nodes(ends.says):
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
    """For how many seconds its nodes run at most; None where they are not of Auto Mode."""
    chosen = template.spec.get("nodeSelector") or {}
    if any(label in chosen for label in _OTHER_NODES) or chosen.get(_COMPUTE, "auto") != "auto":
        return None
    if _POOL_LABEL in chosen:
        return stack.once(_lives).get(chosen[_POOL_LABEL])
    return stack.once(_longest_life)


def _lives(stack: Stack) -> dict[Any, float]:
    """Seconds for which nodes of the pools of Auto Mode run at most, by the name of the pool."""
    return {metadata(pool).get("name"): _expiry(pool) for pool in stack.all(_POOL) if _is_of_auto_mode(pool)}


def _longest_life(stack: Stack) -> float:
    return max(stack.once(_lives).values(), default=_USUAL_SECONDS)


def _expiry(pool: Resource) -> float:
    given = ((spec(pool).get("template") or {}).get("spec") or {}).get("expireAfter")
    if given is None:
        return _USUAL_SECONDS
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", str(given))
    # `Never` is a word of Karpenter; EKS ends the node all the same.
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else _MOST_SECONDS
    return min(seconds, _MOST_SECONDS)


def _outlives_nodes(says: Mapping[str, Any]) -> bool:
    """Whether a job says that it starts again where its node ended."""
    rules = [rule for rule in (says.get("podFailurePolicy") or {}).get("rules") or () if rule]
    ignored = [rule.get("onPodConditions") or () for rule in rules if rule.get("action") == "Ignore"]
    return any(one and one.get("type") == "DisruptionTarget" for conditions in ignored for one in conditions)


@CATALOGUE.rule_around(
    About(
        "MLS-GPU-11",
        "high",
        (_CLASS,),
        "Nodes start into the reservations of a NodeClass as capacity of type reserved only: without a pool"
        " that takes it, the reservation is paid for, and so are the nodes that start beside it.",
        "Add reserved to karpenter.sh/capacity-type of the pool that names the class.",
        ("EKS User Guide, auto-odcr",),
    )
)
def reservations_of_auto_mode_are_used(nodes: Resource, stack: Stack) -> Iterator[Violation]:
    """A NodeClass with reservations has a pool that takes reserved capacity."""
    if not spec(nodes).get("capacityReservationSelectorTerms"):
        raise NotApplicableError("it names no reservation")
    pools = stack.once(_pools_by_class).get(metadata(nodes).get("name"), [])
    if not any(_takes_reserved(pool) for pool in pools):
        what = "no pool of the class takes reserved capacity" if pools else "no pool names the class"
        yield Violation(what, "spec.capacityReservationSelectorTerms")


def _pools_by_class(stack: Stack) -> dict[Any, list[Resource]]:
    """The pools of Auto Mode by the name of the NodeClass that they take."""
    found: dict[Any, list[Resource]] = {}
    for pool in filter(_is_of_auto_mode, stack.all(_POOL)):
        named = ((spec(pool).get("template") or {}).get("spec") or {}).get("nodeClassRef") or {}
        found.setdefault(named.get("name"), []).append(pool)
    return found


def _takes_reserved(pool: Resource) -> bool:
    """A pool that does not say takes every type."""
    given = ((spec(pool).get("template") or {}).get("spec") or {}).get("requirements") or ()
    said = [one for one in given if one and one.get("key") == _CAPACITY]
    return all(
        ("reserved" in (one.get("values") or ())) == (one.get("operator") == "In")
        for one in said
        if one.get("operator") in ("In", "NotIn")
    )
