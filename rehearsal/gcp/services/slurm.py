"""Clusters of Cluster Director: login nodes, and what of a cluster cannot be changed.

Source: hypercompute_cluster.proto of v1 (field_behavior IMMUTABLE, output only fields). Names of login nodes
are those of Cluster Toolkit (`<cluster>-login-001`), as a quickstart shows them.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.emulation.site import Hooks, refuse
from rehearsal.core.model import Properties, Record
from rehearsal.gcp.rules.book import block, items
from rehearsal.gcp.site import Site

CLUSTER = "hypercomputecluster/cluster:Cluster"
_FIXED = ("networkResources", "storageResources", "computeResources")


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    return _described(site, inputs)


def _updated(site: Site, record: Record, new: Properties) -> Properties:
    """Refuse another configuration of a resource that stays: the API has only new and removed ones."""
    for kind in _FIXED:
        before = {one.get("id"): one.get("config") for one in items(record.inputs.get(kind))}
        for index, one in enumerate(items(new.get(kind))):
            if one.get("id") in before and before[one["id"]] != one.get("config"):
                raise refuse(
                    "invalidArgument",
                    f"{kind}[{one['id']}].config is immutable",
                    f"{kind}[{index}].config",
                    "Give the changed resource another id.",
                )
    _refuse_disks(record.inputs, new)
    return _described(site, new)


def _refuse_disks(old: Properties, new: Properties) -> None:
    """Refuse another boot disk of a nodeset that stays."""

    def disks(inputs: Properties) -> Mapping[Any, Any]:
        sets = items(block(inputs.get("orchestrator"), "slurm").get("nodeSets"))
        return {one.get("id"): block(one, "computeInstance").get("bootDisk") for one in sets}

    before = disks(old)
    for name, disk in disks(new).items():
        if name in before and before[name] != disk:
            text, path = f"nodeSets[{name}].bootDisk is immutable", "orchestrator.slurm.nodeSets"
            raise refuse("invalidArgument", text, path, "Give the changed nodeset another id.")


def _described(site: Site, inputs: Properties) -> Properties:
    slurm = block(inputs.get("orchestrator"), "slurm")
    login = block(slurm, "loginNodes")
    if not login:
        return {}
    zone, cluster = login.get("zone"), inputs.get("clusterId")
    count = int(str(login.get("count") or 0)) if str(login.get("count") or 0).isdecimal() else 0
    names = [
        {"instance": f"projects/{site.project}/zones/{zone}/instances/{cluster}-login-{number:03}"}
        for number in range(1, count + 1)
    ]
    whole: dict[str, Any] = {**slurm, "loginNodes": {**login, "instances": names}}
    return {"orchestrator": {"slurm": whole}}


HOOKS: Mapping[str, Hooks[Site]] = {CLUSTER: Hooks(outputs=_outputs, updated=_updated)}
