"""Teams whose pods take turns on the same GPUs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.accelerators import GkePool, Pool, all_pools
from policies.rules.kubernetes.objects import CLUSTER_QUEUES, RESOURCE_FLAVORS, metadata, spec
from policies.stack import Stack

_CONFIG_LABEL = "nvidia.com/device-plugin.config"
"""Label of a node with the name of its configuration (NVIDIA/k8s-device-plugin, README)."""
_ACCEPTED = "trainstack.dev/teams"
"""Annotation of a flavor: the teams that its stack names for the pool."""
_CHARTS = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v4:Chart", "kubernetes:helm.sh/v3:Chart")
_CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
_EVERY = "every namespace"


@CATALOG.rule_around(
    "MLS-K8S-12",
    "medium",
    RESOURCE_FLAVORS,
    "Pods that take turns on a GPU have its memory and its faults in common: one can take all of the memory,"
    " and an error of one can end the others.",
    "Use partitions (MIG), or give the pool to one team: layout.pools[].teams. Teams that may share are named"
    " there.",
    ("NVIDIA/k8s-device-plugin README, Shared Access to GPUs",),
)
def teams_share_no_gpu_without_isolation(flavor: Resource, stack: Stack) -> Iterator[Violation]:
    """GPUs on which pods take turns are of one team, or of teams that the stack names."""
    labels = spec(flavor).get("nodeLabels") or {}
    pools = [pool for pool in stack.once(_in_turns) if labels.items() <= pool.labels().items()]
    if not pools:
        raise NotApplicableError("no pods take turns on the GPUs of its nodes")
    teams = stack.once(_teams).get(str(metadata(flavor).get("name")), set())
    named = str((metadata(flavor).get("annotations") or {}).get(_ACCEPTED) or "").split(",")
    if teams - {*named} and (len(teams) > 1 or _EVERY in teams):
        words = f"pods of {', '.join(sorted(teams))} take turns on GPUs of pool {pools[0].name}"
        yield Violation(words, "metadata.name")


def _in_turns(stack: Stack) -> list[Pool]:
    return [pool for pool in all_pools(stack) if _takes_turns(pool, stack)]


def _takes_turns(pool: Pool, stack: Stack) -> bool:
    if isinstance(pool, GkePool):
        node = pool.props.get("nodeConfig") or {}
        shared = [one.get("gpuSharingConfig") or {} for one in node.get("guestAccelerators") or ()]
        return any(one.get("gpuSharingStrategy") == "TIME_SHARING" for one in shared)
    if not pool.devices():
        return False
    slicing, usual = stack.once(_plugin_configs)
    return str(pool.labels().get(_CONFIG_LABEL) or usual) in slicing


def _plugin_configs(stack: Stack) -> tuple[set[str], str]:
    """Names of the device plugin's configurations with turns, and the name of its usual one."""
    texts: dict[str, Any] = {}
    usual = ""
    for release in stack.all(*_CHARTS):
        values = release.props.get("values") or {}
        # The chart itself, or as a part of another one.
        for chart in (values, *(one for one in values.values() if isinstance(one, Mapping))):
            config = chart.get("config")
            if isinstance(config, Mapping) and isinstance(config.get("map"), Mapping):
                texts |= config["map"]
                usual = str(config.get("default") or usual)
    for given in stack.all(_CONFIG_MAP):
        texts |= {
            name: text for name, text in (given.props.get("data") or {}).items() if "timeSlicing" in str(text)
        }
    return {name for name, text in texts.items() if _has_turns(text)}, usual


def _has_turns(text: Any) -> bool:
    import yaml  # noqa: PLC0415 - stacks without such texts need none

    try:
        body = yaml.safe_load(text) if isinstance(text, str) else text
    except yaml.YAMLError:
        return False
    sharing = body.get("sharing") if isinstance(body, Mapping) else None
    slicing = sharing.get("timeSlicing") if isinstance(sharing, Mapping) else None
    rows = slicing.get("resources") if isinstance(slicing, Mapping) else None
    return any(int(row.get("replicas") or 1) > 1 for row in rows or () if isinstance(row, Mapping))


def _teams(stack: Stack) -> dict[str, set[str]]:
    """The teams with a queue for each flavor."""
    found: dict[str, set[str]] = {}
    for queue in stack.all(*CLUSTER_QUEUES):
        chosen = spec(queue).get("namespaceSelector")
        if chosen is None:
            continue
        for group in spec(queue).get("resourceGroups") or ():
            for flavor in (group or {}).get("flavors") or ():
                found.setdefault(str(flavor.get("name")), set()).add(_audience(chosen))
    return found


def _audience(selector: Any) -> str:
    """The namespaces of a selector: the values of its labels, else all of it."""
    labels, rest = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    if not labels and not rest:
        return _EVERY
    if rest:
        return json.dumps(selector, sort_keys=True)
    return ",".join(str(labels[key]) for key in sorted(labels))
