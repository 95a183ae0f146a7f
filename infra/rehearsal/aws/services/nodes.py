"""EKS managed node groups. Source: Amazon EKS User Guide (managed node groups, launch template support)."""

from collections.abc import Iterator
from typing import Any

from infra.rehearsal.aws import facts
from infra.rehearsal.aws.naming import draw
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties
from infra.rehearsal.properties import at
from infra.rehearsal.state import Record

_CAPACITY = ("ON_DEMAND", "SPOT", "CAPACITY_BLOCK")


def _check_group(inputs: Properties) -> Iterator[CheckFailure]:
    capacity = inputs.get("capacityType", "ON_DEMAND")
    if known(capacity) and capacity not in _CAPACITY:
        yield CheckFailure("capacityType", f"must be one of {', '.join(_CAPACITY)}, not {capacity}")
    scaling = inputs.get("scalingConfig")
    if isinstance(scaling, dict):
        yield from _check_scaling(scaling)
    template = inputs.get("launchTemplate")
    if template is not None:
        for name in ("diskSize", "remoteAccess"):
            if inputs.get(name) is not None:
                yield CheckFailure(
                    name,
                    f"InvalidParameterException: {name} belongs in the launch template",
                )
    if capacity == "CAPACITY_BLOCK" and template is None:
        yield CheckFailure(
            "launchTemplate",
            "InvalidParameterException: CAPACITY_BLOCK needs a launch template with market type "
            "capacity-block and the reservation's id",
        )
    yield from _check_ami(inputs.get("amiType"), inputs.get("instanceTypes"), "instanceTypes")


def _check_scaling(scaling: dict[str, Any]) -> Iterator[CheckFailure]:
    sizes = [scaling.get(name) for name in ("minSize", "desiredSize", "maxSize")]
    if all(isinstance(size, int) for size in sizes):
        low, wanted, high = (int(str(size)) for size in sizes)
        if not low <= wanted <= high or high < 1:
            yield CheckFailure(
                "scalingConfig",
                f"InvalidParameterException: minSize {low} <= desiredSize {wanted} <= maxSize {high} with "
                "maxSize >= 1 does not hold",
            )


def _check_ami(ami: Any, types: Any, path: str) -> Iterator[CheckFailure]:
    """The image must have the driver of the accelerator, and the architecture of the machine."""
    if not isinstance(ami, str) or not isinstance(types, list) or ami == "CUSTOM":
        return
    for index, name in enumerate(types):
        kind = facts.catalog().instance_types.get(name) if isinstance(name, str) else None
        if kind is None:
            continue
        here = f"{path}[{index}]"
        if "NVIDIA" not in ami and "GPU" not in ami and not ami.startswith("BOTTLEROCKET"):
            yield CheckFailure("amiType", f"{name} has GPUs, but image {ami} has no NVIDIA driver")
        if ("ARM_64" in ami) != (kind.architecture == "arm64"):
            yield CheckFailure(
                here, f"InvalidParameterException: [{name}] is {kind.architecture}, image {ami} is not"
            )


def _admit_group(site: Site, inputs: Properties) -> None:
    template = _template(site, inputs)
    if template is None:
        return
    specified = template.inputs
    if inputs.get("instanceTypes") and specified.get("instanceType"):
        raise refuse(
            "InvalidParameterException",
            "Instance types must be given in the launch template or in the node group, not in both",
            "instanceTypes",
        )
    faults = list(_check_ami(inputs.get("amiType"), [specified.get("instanceType")], "launchTemplate"))
    if faults:
        raise refuse("InvalidParameterException", faults[0].reason, faults[0].property)
    market = at(specified, "instanceMarketOptions.marketType")
    block = inputs.get("capacityType") == "CAPACITY_BLOCK"
    if block != (market == "capacity-block"):
        raise refuse(
            "InvalidParameterException",
            f"capacityType {inputs.get('capacityType', 'ON_DEMAND')} does not go with market type {market}",
            "capacityType",
            "CAPACITY_BLOCK and instanceMarketOptions.marketType = capacity-block go together.",
        )
    target = at(specified, "capacityReservationSpecification.capacityReservationTarget.capacityReservationId")
    if block and target is None:
        raise refuse(
            "InvalidParameterException",
            "a capacity block needs the id of its reservation in the launch template",
            "launchTemplate",
            "Set capacityReservationSpecification.capacityReservationTarget.capacityReservationId.",
        )
    _refuse_spread(site, inputs, specified)


def _refuse_spread(site: Site, inputs: Properties, specified: Properties) -> None:
    """EFA works within one zone, and so does a cluster placement group."""
    interfaces = specified.get("networkInterfaces") or []
    efa = any(one.get("interfaceType") in ("efa", "efa-only") for one in interfaces)
    zones = {
        subnet.outputs.get("availabilityZone")
        for subnet in (site.find(value, "ec2/subnet:Subnet") for value in inputs.get("subnetIds") or [])
        if subnet
    }
    if (efa or at(specified, "placement.groupName")) and len(zones) > 1:
        raise refuse(
            "InvalidParameterException",
            "EFA and cluster placement work within one zone, but the subnets are in "
            + ", ".join(sorted(map(str, zones))),
            "subnetIds",
            "Give the node group the subnets of one zone.",
        )


def _template(site: Site, inputs: Properties) -> Record | None:
    given = inputs.get("launchTemplate")
    if not isinstance(given, dict):
        return None
    return site.find(given.get("id") or given.get("name"), "ec2/launchTemplate:LaunchTemplate")


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    cluster = site.find(inputs.get("clusterName"), "eks/cluster:Cluster")
    given = inputs.get("launchTemplate")
    filled: Properties = {
        "resources": [
            {
                "autoscalingGroups": [
                    {"name": f"eks-{outputs.get('nodeGroupName')}-{draw(f'{seed}/asg', 8)}"}
                ],
                "remoteAccessSecurityGroupId": "",
            }
        ],
        "version": inputs.get("version") or (cluster.outputs["version"] if cluster else None),
        "amiType": inputs.get("amiType") or "AL2023_x86_64_STANDARD",
        "capacityType": inputs.get("capacityType") or "ON_DEMAND",
        "instanceTypes": inputs.get("instanceTypes") or ([] if given else ["t3.medium"]),
        "diskSize": inputs.get("diskSize") or (0 if given else 20),
    }
    template = _template(site, inputs)
    if isinstance(given, dict) and template is not None:
        filled["launchTemplate"] = {"id": template.id, "name": template.outputs.get("name"), **given}
    return filled


HOOKS = {"eks/nodeGroup:NodeGroup": Hooks(check=_check_group, admit=_admit_group, outputs=_outputs)}
