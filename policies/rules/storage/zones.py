"""Zones of accelerators and of their file systems."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.accelerators import has_accelerators
from policies.rules.pools import NODE_GROUP, template_of, zones_of
from policies.stack import Stack

_LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
_EFS, _TARGET = "aws:efs/fileSystem:FileSystem", "aws:efs/mountTarget:MountTarget"


@CATALOG.rule_around(
    "MLS-STO-11",
    "medium",
    (NODE_GROUP,),
    "Traffic between zones is billed twice and has a higher latency; a mount of EFS fails in a zone"
    " without a mount target.",
    "Put the pool into the subnet of the file system, or give EFS a mount target in its zone.",
)
def accelerators_share_a_zone_with_their_data(pool: Resource, stack: Stack) -> Iterator[Violation]:
    """Pools of accelerators share a zone with Lustre, and reach EFS in every zone of theirs."""
    stack.once(_needs_file_systems)
    if not has_accelerators(pool, stack):
        raise NotApplicableError("its machines have no accelerator")
    zones = zones_of(pool, "subnetIds", stack)
    lustre = stack.once(_zones_of_lustre)
    if lustre and not _zones_of_pool(pool, stack) & lustre:
        message = f"it is in {', '.join(sorted(zones))}, and Lustre in {', '.join(sorted(lustre))}"
        yield Violation(message, "subnetIds")
    for reached, system in stack.once(_zones_of_efs).items():
        for zone in sorted(zones - reached):
            yield Violation(f"{system} has no mount target in {zone}", "subnetIds")


def _zones_of_pool(group: Resource, stack: Stack) -> set[str]:
    """Zones of all groups with the launch template of `group`: a pool may have one group for each zone."""
    template = _template(group, stack)
    if template is None:
        return zones_of(group, "subnetIds", stack)
    return stack.once(_zones_of_template, template.urn)


def _zones_of_template(stack: Stack, template: str) -> set[str]:
    groups = stack.once(_groups_by_template)[template]
    return {zone for group in groups for zone in zones_of(group, "subnetIds", stack)}


def _groups_by_template(stack: Stack) -> dict[str, list[Resource]]:
    """Groups by the URN of their launch template. A template that is unknown concerns its group alone."""
    found: dict[str, list[Resource]] = {}
    for group in stack.all(NODE_GROUP):
        template = _template(group, stack)
        if template:
            found.setdefault(template.urn, []).append(group)
    return found


def _template(group: Resource, stack: Stack) -> Resource | None:
    try:
        return template_of(group, stack)
    except UndeterminedError:
        return None


def _needs_file_systems(stack: Stack) -> None:
    if not (stack.all(_LUSTRE) or stack.all(_EFS)):
        raise NotApplicableError("the stack has no file system")


def _zones_of_lustre(stack: Stack) -> set[str]:
    return {zone for system in stack.all(_LUSTRE) for zone in zones_of(system, "subnetIds", stack)}


def _zones_of_efs(stack: Stack) -> dict[frozenset[str], str]:
    """Names of file systems with mount targets, by the zones of these."""
    found: dict[frozenset[str], list[str]] = {}
    for system in stack.all(_EFS):
        targets = list(stack.users(system, _TARGET, "fileSystemId"))
        if targets:
            reached = frozenset(zone for one in targets for zone in zones_of(one, "subnetId", stack))
            found.setdefault(reached, []).append(system.name)
    return {reached: ", ".join(names) for reached, names in found.items()}
