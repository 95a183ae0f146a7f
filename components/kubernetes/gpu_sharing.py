"""Sharing of GPUs by pods: its arguments, its checks, and configurations of NVIDIA's device plugin."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from components.kubernetes.queueing.quotas import GPU
from infra.catalog.kubernetes import limits
from infra.catalog.pools import sharing_problems
from infra.errors import Problem

CONFIG_LABEL = "nvidia.com/device-plugin.config"
"""Label of nodes with the name of the device plugin's configuration (NVIDIA/k8s-device-plugin, README)."""
_WHOLE, _PARTITIONS = "whole", "partitions"
# Pods get GPUs by mounts, which only the plugin can give them. Nodes with shared GPUs obey nothing else.
_BY_MOUNT = {"plugin": {"deviceListStrategy": "volume-mounts"}}


class SharingArgs(TypedDict):
    """Sharing of a GPU by pods."""

    kind: str
    """`time_sharing`: pods take turns, and share memory and faults. `mig`: each has a part of its own."""
    clients: NotRequired[int]
    """Pods per GPU; with `time_sharing`."""
    partition: NotRequired[str]
    """Size of a part, such as `1g.10gb`; with `mig`."""


def problems(
    pool: str,
    sharing: SharingArgs,
    *,
    purpose: str,
    rdma: bool,
    parts: Callable[[str, str], Iterator[Problem]],
) -> Iterator[Problem]:
    """The pool can share its GPUs in this way; `parts` checks a path and the size of a part there."""
    path, kind = f"{pool}.sharing", sharing["kind"]
    yield from sharing_problems(path, kind, purpose, f"{pool}.rdma", rdma=rdma)
    if kind == "time_sharing":
        yield from limits["clients_per_gpu"].problems(f"{path}.clients", sharing.get("clients", 0))
    elif kind == "mig":
        yield from parts(f"{path}.partition", sharing.get("partition", ""))
    else:
        fix = "Choose time_sharing or mig."
        yield Problem(f"{path}.kind", kind, "unknown way to share a GPU", fix, code="unknown-gpu-sharing")


def shared_config(sharing: SharingArgs) -> str:
    """Name of the device plugin's configuration for nodes whose GPUs are shared in this way."""
    return f"turns-{sharing['clients']}" if sharing["kind"] == "time_sharing" else _PARTITIONS


def plugin_values(shared: Sequence[SharingArgs]) -> dict[str, Any]:
    """One configuration by way of sharing; nodes without the label get the one with whole GPUs.

    The resource keeps its name, so that quotas, the autoscaler and dashboards count shares as they count
    GPUs: with the strategy `single`, parts are `nvidia.com/gpu`, too. A pod gets one turn: two could be of
    one GPU, and give no more of it (k8s-device-plugin issue 491).

    The chart (v0.20.0, templates/_helpers.tpl and daemonset-device-plugin.yml) writes `migStrategy` and
    `deviceListStrategy` into the environment, which overrides the configurations, so the second is in these
    alone. It then adds the capability SYS_ADMIN, with which the plugin itself sees GPUs on nodes that obey no
    environment variable of others. For parts that is too little: up to toolkit 1.20.0, with CDI as the
    default, only a privileged container opens them (nvidia-container-toolkit issue 1740, pull request 1947).

    While a pool has parts, `whole` counts them, too: nodes may lose the label while they still have some.
    """
    cut = any(sharing["kind"] == "mig" for sharing in shared)
    configs: dict[str, Any] = {_WHOLE: _flags("single" if cut else "none")}
    for sharing in sorted(shared, key=shared_config):
        if sharing["kind"] == "mig":
            configs[_PARTITIONS] = _flags("single", _BY_MOUNT)
            continue
        slicing = {
            "renameByDefault": False,
            "failRequestsGreaterThanOne": True,
            "resources": [{"name": GPU, "replicas": sharing["clients"]}],
        }
        configs[shared_config(sharing)] = {**_flags("none", _BY_MOUNT), "sharing": {"timeSlicing": slicing}}
    values: dict[str, Any] = {
        "config": {"map": {name: json.dumps(each) for name, each in configs.items()}, "default": _WHOLE}
    }
    return {**values, **({"securityContext": {"privileged": True}} if cut else {"migStrategy": "none"})}


def _flags(strategy: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"version": "v1", "flags": {"migStrategy": strategy, **(more or {})}}
