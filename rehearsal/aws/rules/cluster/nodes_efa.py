"""Node groups with cluster placement, in one zone, or with EFA, whose security group is open to itself."""

from collections.abc import Iterator, Mapping

from rehearsal.aws.rules.book import BOOK, World
from rehearsal.aws.rules.reading import EFA_DEVICES, items, subnets, template_of, zones
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at, each
from rehearsal.core.rules.model import Violation

_GROUP = "aws:eks/nodeGroup:NodeGroup"
_SECURITY = "ec2/securityGroup:SecurityGroup"
_ALL = ("-1", "all")
_GUIDE = "EC2 User Guide, create-efa.md (security group); reference: AWS PCS User Guide, EFA security group"


@BOOK.rule_around(
    "AWS-EFA-002",
    _GROUP,
    source="botocore 1.44.5 ec2/2016-11-15 CreatePlacementGroup",
    advice=True,
)
def cluster_placement_in_one_zone(inputs: Properties, site: World) -> Iterator[Violation]:
    """A cluster placement group lies within one zone."""
    template, spread = template_of(site, inputs), zones(subnets(site, inputs.get("subnetIds")))
    if template is None or len(spread) < 2:
        return
    name = at(template.inputs, "placement.groupName")
    group = site.find(name, "ec2/placementGroup:PlacementGroup")
    if group and group.outputs.get("strategy") == "cluster":
        yield Violation(
            "subnetIds",
            f"cluster placement works within one zone, but the subnets are in {', '.join(spread)}",
            "Give the node group the subnets of one zone.",
            "InvalidParameterException",
        )


@BOOK.rule_around("AWS-EFA-003", _GROUP, source=_GUIDE, advice=True)
def efa_group_open_inwards(inputs: Properties, site: World) -> Iterator[Violation]:
    """A security group of EFA devices admits all traffic from itself, by its id."""
    yield from _closed(inputs, site, "ingress", "Ingress", "inbound")


@BOOK.rule_around("AWS-EFA-004", _GROUP, source=_GUIDE, advice=True)
def efa_group_open_outwards(inputs: Properties, site: World) -> Iterator[Violation]:
    """A security group of EFA devices lets out all traffic to itself, by its id: 0.0.0.0/0 does not do."""
    yield from _closed(inputs, site, "egress", "Egress", "outbound")


def _closed(inputs: Properties, site: World, inline: str, kind: str, word: str) -> Iterator[Violation]:
    """One violation for the first EFA device none of whose groups is open to itself that way."""
    template = template_of(site, inputs)
    if template is None or site.preview:
        return
    for path, interface in items(template.inputs, "networkInterfaces"):
        given = interface.get("securityGroups")
        ids = given if isinstance(given, list) else []
        found = [site.find(value, _SECURITY) for value in ids]
        if interface.get("interfaceType") not in EFA_DEVICES or None in found or not found:
            continue
        if not any(group and _open(site, group, inline, kind) for group in found):
            yield Violation(
                "launchTemplate",
                f"no security group of {path} allows all {word} traffic "
                f"{'from' if kind == 'Ingress' else 'to'} itself, which EFA needs",
                "Add a rule with protocol -1 and the group's own id, and let the node group depend on it.",
                "InvalidParameterException",
            )
            return


def _open(site: World, group: Record, inline: str, kind: str) -> bool:
    if not group.urn:
        return True  # the cluster's own group, which EKS makes open to itself
    for _, rule in each(group.outputs, f"{inline}[]"):
        own = isinstance(rule, Mapping) and (
            rule.get("self") is True or group.id in (rule.get("securityGroups") or [])
        )
        if own and rule.get("protocol") in _ALL:
            return True
    for rule in site.users(group, f"vpc/securityGroup{kind}Rule:SecurityGroup{kind}Rule"):
        values = rule.outputs
        own = values.get("securityGroupId") == values.get("referencedSecurityGroupId") == group.id
        if own and values.get("ipProtocol") in _ALL:
            return True
    for rule in site.users(group, "ec2/securityGroupRule:SecurityGroupRule"):
        values = rule.outputs
        own = values.get("self") is True or values.get("sourceSecurityGroupId") == group.id
        if own and values.get("type") == inline and values.get("protocol") in _ALL:
            return True
    return False
