"""Launch templates. Source: EC2 User Guide (Elastic Fabric Adapter, network cards); the catalogue."""

from collections.abc import Iterator
from typing import Any

from infra.rehearsal.aws import facts
from infra.rehearsal.aws.site import Hooks, Site, known
from infra.rehearsal.model import CheckFailure, Properties
from infra.rehearsal.state import Record

_EFA = ("efa", "efa-only")


def _check_template(inputs: Properties) -> Iterator[CheckFailure]:
    interfaces = inputs.get("networkInterfaces")
    if not isinstance(interfaces, list) or not interfaces:
        return
    if inputs.get("vpcSecurityGroupIds"):
        yield CheckFailure(
            "vpcSecurityGroupIds",
            "InvalidParameterCombination: network interfaces and instance-level security groups may not be "
            "specified in one request; give each interface its securityGroups",
        )
    places = [(_number(one, "networkCardIndex"), _number(one, "deviceIndex")) for one in interfaces]
    if len(set(places)) != len(places):
        yield CheckFailure(
            "networkInterfaces", "two interfaces share a network card and device index: each needs its own"
        )
    if (0, 0) not in places:
        yield CheckFailure("networkInterfaces", "the primary interface (card 0, device 0) is missing")
    for index, one in enumerate(interfaces):
        if len(interfaces) > 1 and one.get("associatePublicIpAddress") in (True, "true"):
            yield CheckFailure(
                f"networkInterfaces[{index}].associatePublicIpAddress",
                "InvalidParameterCombination: it cannot be set with multiple network interfaces",
            )
    yield from _check_efa(inputs.get("instanceType"), interfaces)


def _check_efa(instance_type: Any, interfaces: list[Any]) -> Iterator[CheckFailure]:
    """EFA devices against what the type has; a type the catalogue does not hold is let pass."""
    wanted = [index for index, one in enumerate(interfaces) if one.get("interfaceType") in _EFA]
    if not known(instance_type) or instance_type not in facts.catalog().instance_types or not wanted:
        return
    kind = facts.catalog().instance_type(instance_type)
    if not kind.efa:
        for index in wanted:
            yield CheckFailure(
                f"networkInterfaces[{index}].interfaceType", f"{instance_type} does not support EFA"
            )
    elif len(wanted) > kind.efa_interfaces:
        yield CheckFailure(
            "networkInterfaces",
            f"{instance_type} has {kind.efa_interfaces} EFA interfaces, not {len(wanted)}",
        )
    for index, one in enumerate(interfaces):
        card = _number(one, "networkCardIndex")
        if card >= kind.network_cards:
            yield CheckFailure(
                f"networkInterfaces[{index}].networkCardIndex",
                f"{instance_type} has network cards 0 to {kind.network_cards - 1}, not {card}",
            )


def _number(interface: Any, name: str) -> int:
    value = interface.get(name, 0)
    return int(value) if known(value) else 0


def _next_version(site: Site, template: Record, inputs: Properties) -> Properties:
    """Every change makes a new version; it becomes the default one when asked for."""
    latest = int(template.outputs.get("latestVersion", 1)) + 1
    default = latest if inputs.get("updateDefaultVersion") else template.outputs.get("defaultVersion", 1)
    return {"latestVersion": latest, "defaultVersion": inputs.get("defaultVersion", default)}


def _check_placement(inputs: Properties) -> Iterator[CheckFailure]:
    strategies = ("cluster", "partition", "spread")
    strategy = inputs.get("strategy")
    if known(strategy) and strategy not in strategies:
        yield CheckFailure("strategy", f"must be one of {', '.join(strategies)}, not {strategy}")
    if inputs.get("partitionCount") is not None and strategy != "partition":
        yield CheckFailure("partitionCount", "only strategy partition takes it")


HOOKS = {
    "ec2/launchTemplate:LaunchTemplate": Hooks(
        check=_check_template, updated=_next_version, volatile=("latestVersion", "defaultVersion")
    ),
    "ec2/placementGroup:PlacementGroup": Hooks(check=_check_placement),
}
