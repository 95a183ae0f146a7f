"""Security groups and their rules."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import given, number, vpc_of_group
from rehearsal.core.model import Properties
from rehearsal.core.properties import each, known
from rehearsal.core.rules.model import Violation

_IN = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_OUT = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
_RULES = "pulumi-aws 7.51.1 docstring of aws.vpc.SecurityGroupIngressRule"
_PERMISSION = "botocore 1.44.5 ec2/2016-11-15 IpPermission"
_WITH_PORTS = ("tcp", "udp", "6", "17")
_PORTS = ("fromPort", "toPort")
_INSTANCE = "aws:ec2/instance:Instance"


@BOOK.rule(
    "AWS-SG-013",
    "aws:ec2/securityGroup:SecurityGroup",
    source="openstack/ec2-api ec2api/api/security_group.py (create_security_group: text)",
)
def name_is_not_reserved(inputs: Properties) -> Iterator[Violation]:
    """A security group is not named default, as that of its VPC is."""
    if inputs.get("name") == "default":
        fix = "Choose another name, or adopt that of the VPC with a DefaultSecurityGroup."
        yield Violation(
            "name", "Cannot use reserved security group name: default", fix, "InvalidParameterValue"
        )


@BOOK.rule("AWS-SG-002", _IN, _OUT, source=_RULES)
def all_protocols_have_no_ports(inputs: Properties) -> Iterator[Violation]:
    """A rule for all protocols names no ports."""
    if inputs.get("ipProtocol") == "-1":
        for name in given(inputs, *_PORTS):
            if inputs[name] != -1:
                yield Violation(name, "protocol -1 (all) takes no ports", f"Leave {name} out.")


@BOOK.rule("AWS-SG-003", _IN, _OUT, source=_PERMISSION)
def tcp_needs_ports(inputs: Properties) -> Iterator[Violation]:
    """A TCP or UDP rule names its ports."""
    protocol = inputs.get("ipProtocol")
    if known(protocol) and str(protocol).lower() in _WITH_PORTS:
        for name in _PORTS:
            if name not in inputs:
                yield Violation(name, f"protocol {protocol} needs {name}")


@BOOK.rule("AWS-SG-004", _IN, _OUT, source=_PERMISSION)
def ports_in_order(inputs: Properties) -> Iterator[Violation]:
    """The first port of a TCP or UDP rule is not above the last."""
    first, last = number(inputs.get("fromPort")), number(inputs.get("toPort"))
    tcp = str(inputs.get("ipProtocol")).lower() in _WITH_PORTS
    if tcp and first is not None and last is not None and first > last:
        yield Violation("toPort", f"the range {first:.0f} to {last:.0f} is empty")


@BOOK.rule_around(
    "AWS-SG-014",
    _INSTANCE,
    source="hashicorp/terraform-provider-aws internal/service/ec2/ec2_instance.go (readSecurityGroups); "
    "pulumi/pulumi-aws issues 744 and 988",
    advice=True,
)
def groups_of_a_subnet_are_ids(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An instance in a subnet of a VPC names its groups in vpcSecurityGroupIds."""
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    if subnet is not None and subnet.urn and inputs.get("securityGroups"):
        message = (
            "the provider keeps securityGroups in the default VPC only, and replaces the instance in each up"
        )
        yield Violation("securityGroups", message, "Use vpcSecurityGroupIds.")


@BOOK.rule_around(
    "AWS-SG-012",
    _INSTANCE,
    source="ansible/ansible-modules-core issue 347; philschmid/efsync pull request 16",
)
def groups_are_of_the_network(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The security groups of an instance are of the VPC of its subnet."""
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    for path, group in each(inputs, "vpcSecurityGroupIds[]") if subnet else ():
        vpc = vpc_of_group(site, group)
        if subnet and vpc is not None and vpc != subnet.outputs.get("vpcId"):
            yield Violation(
                path,
                f"Security group {group} and subnet {subnet.id} belong to different networks.",
                f"Use a group of {subnet.outputs.get('vpcId')}: this one is of {vpc}.",
                "InvalidParameter",
            )
