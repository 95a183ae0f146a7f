"""Security groups and their rules. Source: EC2 API Reference (AuthorizeSecurityGroupIngress, errors)."""

from collections.abc import Iterator

from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties

_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_PROTOCOLS = ("tcp", "udp", "6", "17")


def _check_rule(inputs: Properties) -> Iterator[CheckFailure]:
    if len([name for name in _PEERS if name in inputs]) != 1:
        yield CheckFailure(
            "", f"InvalidParameterCombination: a rule needs exactly one of {', '.join(_PEERS)}"
        )
    protocol = inputs.get("ipProtocol")
    if not known(protocol):
        return
    for name in ("fromPort", "toPort"):
        port = inputs.get(name)
        if protocol == "-1" and port is not None:
            yield CheckFailure(name, "InvalidParameterValue: protocol -1 (all) takes no ports")
        if protocol in _PROTOCOLS and name not in inputs:
            yield CheckFailure(name, f"InvalidParameterValue: protocol {protocol} needs {name}")
        if isinstance(port, int) and not -1 <= port <= 65535:
            yield CheckFailure(name, f"InvalidParameterValue: {port} is no port")


def _admit_group(site: Site, inputs: Properties) -> None:
    if str(inputs.get("name", "")).startswith("sg-"):
        raise refuse("InvalidParameterValue", "Group names may not start with sg-", "name")


def _default_group_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The group that came with the VPC is taken over, none is made."""
    vpc = site.find(inputs.get("vpcId"), "ec2/vpc:Vpc")
    return {"id": vpc.outputs["defaultSecurityGroupId"] if vpc else ""}


def _check_flow_log(inputs: Properties) -> Iterator[CheckFailure]:
    watched = ("vpcId", "subnetId", "eniId", "transitGatewayId", "transitGatewayAttachmentId")
    if len([name for name in watched if name in inputs]) != 1:
        yield CheckFailure("", f"a flow log watches exactly one of {', '.join(watched)}")
    if inputs.get("logDestinationType", "cloud-watch-logs") == "cloud-watch-logs":
        for name in ("iamRoleArn", "logDestination"):
            if name not in inputs:
                yield CheckFailure(name, f"InvalidParameter: flow logs to CloudWatch Logs need {name}")


HOOKS = {
    "ec2/securityGroup:SecurityGroup": Hooks(admit=_admit_group),
    "ec2/defaultSecurityGroup:DefaultSecurityGroup": Hooks(outputs=_default_group_outputs),
    "ec2/flowLog:FlowLog": Hooks(check=_check_flow_log),
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": Hooks(check=_check_rule),
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule": Hooks(check=_check_rule),
}
