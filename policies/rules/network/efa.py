"""Pools over EFA: their network interfaces, placement and machine types."""

from collections.abc import Iterable, Iterator
from typing import Any

from policies import facts
from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules import pcs
from policies.rules.pools import (
    NODE_GROUP,
    TEMPLATE,
    efa_interfaces,
    groups_of,
    machines_of,
    most_nodes,
    template_of,
    uses_efa,
)
from policies.stack import Stack

_PLACEMENT, _SUBNET = "aws:ec2/placementGroup:PlacementGroup", "aws:ec2/subnet:Subnet"


def _check_efa(template: Resource) -> None:
    if not efa_interfaces(template):
        raise NotApplicableError("it has no EFA device")


@CATALOG.rule_around(
    "MLS-NET-02",
    "critical",
    (TEMPLATE,),
    "A card without its EFA device leaves paid bandwidth unused without an error: "
    "collectives are only slower.",
    "Give the launch template one EFA device per card: device index 0 on the first, 1 on all others.",
    ("pulumi-eks nodes/instances.ts",),
)
def interfaces_are_those_of_the_machine(template: Resource, stack: Stack) -> Iterator[Violation]:
    """A launch template with EFA has the network interfaces that its machine type has EFA devices for."""
    _check_efa(template)
    given = [_place(one) for _, one in template.items("networkInterfaces")]
    for machine in _machines(template, stack):
        known = facts.gpu_type(machine)
        if known is None:
            raise UndeterminedError(f"the catalog knows no EFA layout of {machine}")
        wanted = [(one.network_card_index, one.device_index, one.interface_type) for one in known.efa]
        if sorted(given) != sorted(wanted):
            message = f"{machine} takes {_described(wanted)}, but it has {_described(given)}"
            yield Violation(message, "networkInterfaces")


_Place = tuple[int, int, str]


def _machines(template: Resource, stack: Stack) -> list[str]:
    own = template.props.get("instanceType")
    if own:
        return [own]
    named = {
        machine: None for group in groups_of(template, stack) for machine in machines_of(group, template)
    }
    named |= dict.fromkeys(pcs.machines_of(template, stack))
    if not named:
        raise NotApplicableError("no node group of the stack uses it, and it names no machine type")
    return list(named)


def _place(interface: Any) -> _Place:
    return (
        int(interface.get("networkCardIndex") or 0),
        int(interface.get("deviceIndex") or 0),
        str(interface.get("interfaceType") or "interface"),
    )


def _described(places: Iterable[_Place]) -> str:
    """Description of card ranges: `efa at card 0 device 0, efa-only at cards 1-3 device 1`."""
    runs: list[tuple[list[int], int, str]] = []
    for card, device, form in sorted(places):
        if runs and runs[-1][1:] == (device, form) and card == runs[-1][0][-1] + 1:
            runs[-1][0].append(card)
        else:
            runs.append(([card], device, form))
    words = [
        f"{form} at card{f's {cards[0]}-{cards[-1]}' if len(cards) > 1 else f' {cards[0]}'} device {device}"
        for cards, device, form in runs
    ]
    return ", ".join(words) or "no EFA"


@CATALOG.rule_around(
    "MLS-NET-03",
    "high",
    (NODE_GROUP,),
    "EFA does not cross zones, and outside of a cluster placement group nodes are switches apart.",
    "Give the pool subnets of one zone, and its launch template a placement group of strategy cluster.",
    ("AWS PCS EFA guide", "pulumi-eks nodes"),
)
def efa_nodes_are_close(group: Resource, stack: Stack) -> Iterator[Violation]:
    """A pool over EFA is in one Availability Zone and in a cluster placement group."""
    template = template_of(group, stack)
    if template is None or not efa_interfaces(template):
        raise NotApplicableError("its nodes have no EFA device")
    subnets = stack.sources(group, group.raw("subnetIds"), "subnetIds", _SUBNET)
    if subnets.foreign and len(subnets.foreign) + len(subnets.resources) > 1:
        raise UndeterminedError(f"subnet {subnets.foreign[0]} is not in this stack")
    zones = sorted({_zone(subnet) for subnet in subnets.resources})
    if len(zones) > 1:
        if not subnets.certain:
            raise UndeterminedError("which of the subnets it is in is not known before the deployment")
        yield Violation(f"its subnets are in {', '.join(zones)}", "subnetIds")
    market = template.props.get("instanceMarketOptions") or {}
    if market.get("marketType") == "capacity-block":
        return  # EC2 places the machines of a block itself
    close = stack.target(template, "placement.groupName", _PLACEMENT)
    if close is None:
        name = (template.props.get("placement") or {}).get("groupName")
        if name:
            raise UndeterminedError(f"placement group {name} is not in this stack")
        yield Violation("its launch template names no placement group", "launchTemplate")
    elif close.props.get("strategy") != "cluster":
        yield Violation(
            f"its placement group has the strategy {close.props.get('strategy')}", "launchTemplate"
        )


def _zone(subnet: Resource) -> str:
    zone = subnet.props.get("availabilityZone") or subnet.props.get("availabilityZoneId")
    return str(zone or subnet.computed("availabilityZone"))


@CATALOG.rule_around(
    "MLS-NET-04",
    "high",
    (NODE_GROUP,),
    "EFA on a type without it fails when the first node starts; in a pool of one node it has no use "
    "and limits the pool to one zone.",
    "Use a machine type with EFA and let the pool have two nodes or more, or leave the EFA devices out.",
    ("pulumi-eks examples/efa",),
)
def efa_is_of_use(group: Resource, stack: Stack) -> Iterator[Violation]:
    """EFA is on machine types that have it, in pools that can have two nodes."""
    if not uses_efa(group, stack):
        raise NotApplicableError("its nodes have no EFA device")
    if most_nodes(group) < 2:
        yield Violation(f"it has at most {most_nodes(group)} node", "scalingConfig.maxSize")
    unknown = []
    for machine in machines_of(group, template_of(group, stack)):
        known = facts.gpu_type(machine)
        if known is None:
            unknown.append(machine)
        elif not known.efa:
            yield Violation(f"{machine} has no EFA", "launchTemplate")
    if unknown:
        raise UndeterminedError(f"the catalog does not know {', '.join(unknown)}")
