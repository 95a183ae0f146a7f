"""Whether accelerators find their file systems in their own zone."""

from collections.abc import Iterator

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.walking import each, raw
from policies.stack import Stack

_POOL, _TEMPLATE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/launchTemplate:LaunchTemplate"
_SUBNET, _LUSTRE = "aws:ec2/subnet:Subnet", "aws:fsx/lustreFileSystem:LustreFileSystem"
_EFS, _TARGET = "aws:efs/fileSystem:FileSystem", "aws:efs/mountTarget:MountTarget"


@CATALOGUE.rule_around(
    About(
        "MLS-STO-11",
        "medium",
        (_POOL,),
        "Every byte between zones is billed twice, and the way is longer; a mount of EFS fails where the"
        " zone has no mount target.",
        "Put the pool into the subnet of the file system, or give EFS a mount target in its zone.",
    )
)
def accelerators_are_beside_their_data(pool: Resource, stack: Stack) -> Iterator[Violation]:
    """Pools of accelerators share a zone with Lustre, and reach EFS in every zone of theirs."""
    if not (stack.all(_LUSTRE) or stack.all(_EFS)):
        raise NotApplicableError("the stack has no file system")
    if not _has_accelerators(pool, stack):
        raise NotApplicableError("its machines have no accelerator")
    zones = _zones(pool, "subnetIds", stack)
    lustre = {zone for system in stack.all(_LUSTRE) for zone in _zones(system, "subnetIds", stack)}
    if lustre and not zones & lustre:
        said = f"it is in {', '.join(sorted(zones))}, and Lustre in {', '.join(sorted(lustre))}"
        yield Violation(said, "subnetIds")
    for system in stack.all(_EFS):
        targets = list(stack.users(system, _TARGET, "fileSystemId"))
        reached = {zone for one in targets for zone in _zones(one, "subnetId", stack)}
        for zone in sorted(zones - reached) if targets else ():
            yield Violation(f"{system.name} has no mount target in {zone}", "subnetIds")


def _has_accelerators(pool: Resource, stack: Stack) -> bool:
    from infra.catalog.aws import facts  # noqa: PLC0415 - takes longer to load than all rules

    image = str(pool.props.get("amiType") or "")
    if "NVIDIA" in image or "NEURON" in image:
        return True
    types = list(pool.props.get("instanceTypes") or ())
    for _, named in each(pool.props, "launchTemplate"):
        template = stack.referred(pool, raw(named, "id") or raw(named, "name"), "launchTemplate", _TEMPLATE)
        if template is None:
            raise UndeterminedError("the launch template is not in the stack")
        types.append(template.props.get("instanceType"))
    return any(one in facts.instance_types for one in types)


def _zones(user: Resource, property: str, stack: Stack) -> set[str]:
    given = raw(user.props, property)
    found = set()
    for value in given if isinstance(given, list) else [given]:
        subnet = stack.referred(user, value, property, _SUBNET)
        if subnet is None:
            raise UndeterminedError(f"{property} of {user.name}: {value!r} is not in the stack")
        found.add(str(subnet.props.get("availabilityZone") or subnet.computed("availabilityZoneId")))
    return found
