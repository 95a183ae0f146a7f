"""Requirements for the machines of a node group to start and join their cluster."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws.rules import documents
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.network.routes import is_public, ways_out
from rehearsal.aws.rules.reading import items, named, subnets, template_of
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation

_GROUP = "aws:eks/nodeGroup:NodeGroup"
_ROLE = "iam/role:Role"
_ATTACHED = ("iam/rolePolicyAttachment:RolePolicyAttachment", "iam/rolePolicy:RolePolicy")
_DEFAULT_KEY = "ebs/defaultKmsKey:DefaultKmsKey"
_KEY, _ENDPOINT = "kms/key:Key", "ec2/vpcEndpoint:VpcEndpoint"
_FAILED = "CREATE_FAILED"
# Services that a node calls before it has joined. Source: EKS User Guide, private-clusters.md.
_NEEDED = ("ec2", "ecr.api", "ecr.dkr", "s3")
_SCALER = "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
_USES = ("kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext")


def _starts(inputs: Properties, site: AwsContext) -> bool:
    """Return whether the group starts machines now; a preview does not know what exists then."""
    return not site.preview and at(inputs, "scalingConfig.desiredSize") != 0


def _places(inputs: Properties, site: AwsContext) -> list[Record]:
    """The subnets in which machines start now."""
    return subnets(site, inputs.get("subnetIds")) if _starts(inputs, site) else []


def _template_items(inputs: Properties, site: AwsContext, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Items of a list of the launch template of machines that start now, with paths."""
    template = template_of(site, inputs) if _starts(inputs, site) else None
    return items(template.inputs, name) if template else []


@BOOK.rule_around(
    "AWS-EKS-036",
    _GROUP,
    source="EKS User Guide, private-clusters.md; terraform-aws-modules/terraform-aws-eks issue 2149",
    advice=True,
)
def nodes_reach_their_cluster(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Nodes reach the registry and AWS by a default route, or by interface endpoints of their VPC."""
    for subnet in _places(inputs, site):
        if ways_out(site, subnet) != []:
            continue
        missing = [name for name in _NEEDED if name not in _endpoints(site, subnet)]
        if missing:
            yield Violation(
                "subnetIds",
                f"{named(subnet)} has no default route and its VPC no endpoint for {', '.join(missing)}: "
                "NodeCreationFailure: Instances failed to join the kubernetes cluster",
                "Add a NAT gateway or the endpoints, and let the node group depend on them.",
                _FAILED,
            )


@BOOK.rule_around(
    "AWS-EKS-037", _GROUP, source="aws/containers-roadmap issue 2444; sassoftware/viya4-iac-aws issue 271"
)
def public_subnets_give_addresses(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Nodes in a subnet that routes to an internet gateway get public addresses."""
    interfaces = _template_items(inputs, site, "networkInterfaces")
    if any(str(one.get("associatePublicIpAddress")).lower() == "true" for _, one in interfaces):
        return
    for subnet in _places(inputs, site):
        public = any(map(is_public, ways_out(site, subnet) or ()))
        if public and subnet.outputs.get("mapPublicIpOnLaunch") is not True:
            yield Violation(
                "subnetIds",
                f"Ec2SubnetInvalidConfiguration: {named(subnet)} does not automatically assign public IP "
                "addresses to instances launched into it",
                "Use private subnets, or set mapPublicIpOnLaunch.",
                _FAILED,
            )


@BOOK.rule_around(
    "AWS-EKS-038",
    _GROUP,
    source="pulumi-aws 7.51.1 docstring of aws.eks.NodeGroup (node_role_arn, examples); "
    "EKS User Guide, create-node-role.md",
    advice=True,
)
def node_role_may_join(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The node role has policies before its nodes start: they register with it, and pull their images."""
    role = site.find(inputs.get("nodeRoleArn"), _ROLE) if _starts(inputs, site) else None
    # The policies of a role that no program made are unknown.
    if (
        role is None
        or not role.urn
        or role.outputs.get("managedPolicyArns")
        or role.outputs.get("inlinePolicies")
    ):
        return
    if not any(list(site.users(role, token)) for token in _ATTACHED):
        yield Violation(
            "nodeRoleArn",
            f"{named(role)} has no policy yet: NodeCreationFailure: Instances failed to join the kubernetes "
            "cluster",
            "Attach AmazonEKSWorkerNodePolicy and AmazonEC2ContainerRegistryPullOnly, and let the node group "
            "depend on the attachments.",
            _FAILED,
        )


@BOOK.rule_around(
    "AWS-EKS-039",
    _GROUP,
    source="Amazon EC2 Auto Scaling User Guide, key-policy-requirements-EBS-encryption.md; "
    "hashicorp/terraform-provider-aws issue 39904",
)
def scaling_may_use_the_key(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The key of the disks lets the service-linked role of Auto Scaling use it, by its policy or a grant."""
    for path, mapping in _template_items(inputs, site, "blockDeviceMappings"):
        key = site.find(at(mapping, "ebs.kmsKeyId") or _default_key(mapping, site), _KEY)
        # Delegation to IAM, as in a default policy, is not enough: the role's own policy names no key.
        if key and not _granted(site, key) and not documents.lets(site, key, "AWS", _SCALER, *_USES):
            yield Violation(
                "launchTemplate",
                f"AsgInstanceLaunchFailures: Client.InvalidKMSKey.InvalidState: {path} is encrypted with "
                f"{named(key)}, whose policy does not let {_SCALER} use it",
                f"Allow arn:aws:iam::{site.account}:role/{_SCALER} to use the key and to make grants.",
                _FAILED,
            )


def _default_key(mapping: Mapping[str, Any], site: AwsContext) -> Any:
    """The account's own key for an encrypted disk without a key.

    Source: botocore 1.44.5 ec2/2016-11-15 GetEbsDefaultKmsKeyId; aws/aws-cdk issue 34491.
    """
    if str(at(mapping, "ebs.encrypted")).lower() != "true":
        return None
    return next((one.inputs.get("keyArn") for one in site.all(_DEFAULT_KEY)), None)


def _endpoints(site: AwsContext, subnet: Record) -> set[str]:
    """The services that the VPC of a subnet has endpoints for, as ecr.api."""
    vpc = subnet.outputs.get("vpcId")
    found = [one.outputs for one in site.all(_ENDPOINT) if one.outputs.get("vpcId") == vpc]
    return {str(one.get("serviceName")).partition(f".{site.region}.")[2] for one in found}


def _granted(site: AwsContext, key: Record) -> bool:
    grants = [one.outputs for one in site.users(key, "kms/grant:Grant")]
    return any(_SCALER in str(one.get("granteePrincipal")) for one in grants)
