"""Launch templates, placement groups and capacity reservations."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import EFA_DEVICES, items, number, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation

_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
_INTERFACE = "botocore 1.44.5 ec2/2016-11-15 LaunchTemplateInstanceNetworkInterfaceSpecificationRequest"
_TYPES = "catalog: aws/karpenter-provider-aws instance-types.md and moto 5.2.5 DescribeInstanceTypes"
_RESERVE = "botocore 1.44.5 ec2/2016-11-15 CreateCapacityReservationRequest"


def place(interface: Mapping[str, Any]) -> tuple[int, int]:
    """Network card and device index of an interface; both are 0 by default."""
    return int(number(interface.get("networkCardIndex")) or 0), int(number(interface.get("deviceIndex")) or 0)


@BOOK.rule(
    "AWS-EC2-002",
    _TEMPLATE,
    source="catalog: launch-template layouts of instance_types.toml and their efa_source",
)
def one_place_per_interface(inputs: Properties) -> Iterator[Violation]:
    """No two interfaces share a network card and device index."""
    taken: dict[tuple[int, int], str] = {}
    for path, interface in items(inputs, "networkInterfaces"):
        other = taken.setdefault(place(interface), path)
        if other != path:
            yield Violation(
                f"{path}.deviceIndex", f"{other} has the same network card and device index", "Count up."
            )


@BOOK.rule("AWS-EC2-003", _TEMPLATE, source=_INTERFACE)
def primary_interface(inputs: Properties) -> Iterator[Violation]:
    """One interface is the primary one: card 0, device 0."""
    interfaces = items(inputs, "networkInterfaces")
    if interfaces and (0, 0) not in [place(interface) for _, interface in interfaces]:
        yield Violation("networkInterfaces", "the primary interface (card 0, device 0) is missing")


@BOOK.rule(
    "AWS-EC2-004", _TEMPLATE, source="botocore 1.44.5 ec2/2016-11-15 InstanceNetworkInterfaceSpecification"
)
def public_address_needs_one_interface(inputs: Properties) -> Iterator[Violation]:
    """A public address is associated only where there is one interface."""
    interfaces = items(inputs, "networkInterfaces")
    for path, interface in interfaces if len(interfaces) > 1 else ():
        if interface.get("associatePublicIpAddress") in (True, "true"):
            yield Violation(
                f"{path}.associatePublicIpAddress", "it cannot be set with multiple network interfaces"
            )


@BOOK.rule("AWS-EC2-005", _TEMPLATE, source=_INTERFACE)
def efa_only_has_no_address(inputs: Properties) -> Iterator[Violation]:
    """An efa-only interface has no IP address, so it is neither primary nor public."""
    for path, interface in items(inputs, "networkInterfaces"):
        if interface.get("interfaceType") == "efa-only" and place(interface) == (0, 0):
            yield Violation(
                f"{path}.interfaceType",
                "the primary interface needs an IP address, which efa-only interfaces do not have",
                "Use efa or interface for card 0, device 0.",
            )


@BOOK.rule("AWS-EC2-006", _TEMPLATE, source=_TYPES)
def type_supports_efa(inputs: Properties) -> Iterator[Violation]:
    """Only some instance types have EFA devices."""
    kind = facts.catalog().instance_types.get(text(inputs.get("instanceType")) or "")
    for path, interface in items(inputs, "networkInterfaces") if kind and not kind.efa else ():
        if interface.get("interfaceType") in EFA_DEVICES:
            yield Violation(f"{path}.interfaceType", f"{inputs['instanceType']} does not support EFA")


@BOOK.rule("AWS-EC2-007", _TEMPLATE, source=_TYPES)
def efa_count(inputs: Properties) -> Iterator[Violation]:
    """A template has no more EFA devices than the type."""
    kind = facts.catalog().instance_types.get(text(inputs.get("instanceType")) or "")
    wanted = [one for _, one in items(inputs, "networkInterfaces") if one.get("interfaceType") in EFA_DEVICES]
    if kind and kind.efa and len(wanted) > kind.efa_interfaces:
        yield Violation(
            "networkInterfaces",
            f"{inputs['instanceType']} has {kind.efa_interfaces} EFA interfaces, not {len(wanted)}",
        )


@BOOK.rule("AWS-EC2-008", _TEMPLATE, source=_TYPES)
def network_cards(inputs: Properties) -> Iterator[Violation]:
    """An interface sits on a network card that the type has."""
    kind = facts.catalog().instance_types.get(text(inputs.get("instanceType")) or "")
    for path, interface in items(inputs, "networkInterfaces") if kind else ():
        card = place(interface)[0]
        if kind and card >= kind.network_cards:
            yield Violation(
                f"{path}.networkCardIndex",
                f"{inputs['instanceType']} has network cards 0 to {kind.network_cards - 1}, not {card}",
            )


@BOOK.rule("AWS-EC2-009", _TEMPLATE, source=_TYPES)
def one_efa_per_card(inputs: Properties) -> Iterator[Violation]:
    """A network card takes one EFA device."""
    taken: dict[int, str] = {}
    for path, interface in items(inputs, "networkInterfaces"):
        if interface.get("interfaceType") in EFA_DEVICES:
            card = place(interface)[0]
            other = taken.setdefault(card, path)
            if other != path:
                yield Violation(
                    f"{path}.networkCardIndex", f"{other} is an EFA device of card {card} already"
                )


@BOOK.rule(
    "AWS-EC2-015",
    _TEMPLATE,
    source="botocore 1.44.5 ec2/2016-11-15 LaunchTemplateCapacityReservationSpecificationRequest",
)
def preference_or_target(inputs: Properties) -> Iterator[Violation]:
    """The preferences open and none of a capacity reservation exclude a target."""
    given = at(inputs, "capacityReservationSpecification")
    if not isinstance(given, Mapping) or given.get("capacityReservationTarget") is None:
        return
    if given.get("capacityReservationPreference") in ("open", "none"):
        yield Violation(
            "capacityReservationSpecification.capacityReservationPreference",
            f"{given['capacityReservationPreference']} and a target exclude each other",
            "Leave the preference out.",
        )


@BOOK.rule("AWS-EC2-017", _RESERVATION, source=_RESERVE)
def limited_reservation_ends(inputs: Properties) -> Iterator[Violation]:
    """A limited reservation has an end date, an unlimited one has none."""
    kind, end = inputs.get("endDateType"), inputs.get("endDate")
    if kind == "limited" and end is None:
        yield Violation("endDate", "endDateType limited needs it")
    if kind == "unlimited" and end is not None:
        yield Violation("endDate", "endDateType unlimited takes none")
