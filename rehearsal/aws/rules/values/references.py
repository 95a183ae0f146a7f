"""Forms of references by property names: ARNs, ids of EC2, managed policies."""

import difflib
import re
from collections.abc import Iterator

from rehearsal.aws import values
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.core.model import Properties
from rehearsal.core.properties import each, steps, walk
from rehearsal.core.rules.model import EVERY, Violation

_DOC = "EC2 API Reference, error codes (Invalid*ID.Malformed, Invalid*ID.NotFound)"
# The image of an instance may be a parameter of Systems Manager, and a task of it a document or its name.
_PARAMETER = "resolve:ssm:"
_ARN = re.compile(r"(?!taskArn)(?:.*Arn|arn)s?")
# Names of a property -> prefix of the ids that it takes.
_PREFIXES = {
    "vpcId": "vpc",
    "subnetId": "subnet",
    "subnetIds": "subnet",
    "securityGroupId": "sg",
    "securityGroupIds": "sg",
    "vpcSecurityGroupIds": "sg",
    "sourceSecurityGroupId": "sg",
    "ami": "ami",
    "routeTableId": "rtb",
    "natGatewayId": "nat",
    "networkInterfaceId": "eni",
    "allocationId": "eipalloc",
    "networkAclId": "acl",
    "egressOnlyGatewayId": "eigw",
    "vpcPeeringConnectionId": "pcx",
}
_IMAGES = ("aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/launchConfiguration:LaunchConfiguration")
_ZONES = ("availabilityZone", "availabilityZones", "availabilityZoneName")
# What a program may name as it likes.
_FREE = frozenset({"tags", "tagsAll", "variables", "parameters", "requestParameters", "__defaults"})
_POLICIES = {
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "policyArn",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment": "policyArn",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment": "policyArn",
    "aws:iam/policyAttachment:PolicyAttachment": "policyArn",
    "aws:iam/role:Role": "managedPolicyArns[]",
}
_MANAGED = "arn:aws:iam::aws:policy/"
_MISSPELT = 0.9


def _named(inputs: Properties) -> Iterator[tuple[str, str, str]]:
    """(path, name of the property, value) of each text that is a property's."""
    for path, value in walk(inputs):
        names = [step for step in steps(path) if isinstance(step, str)]
        if isinstance(value, str) and value and names and not _FREE.intersection(names):
            yield path, names[-1], value


@BOOK.rule_around("AWS-REF-001", EVERY, source="botocore 1.44.5: shapes of ARNs (arn:aws[a-z-]*:service:...)")
def arn_for_an_arn(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A property whose name ends in Arn takes an ARN."""
    for path, name, value in _named(inputs):
        if _ARN.fullmatch(name) and not value.startswith("arn:") and value != "*" and not site.exists(value):
            yield Violation(
                path,
                f"{value} is not an ARN",
                "It begins with arn:aws: use the output arn of the resource.",
                "InvalidParameterValue",
            )


@BOOK.rule_around("AWS-REF-002", EVERY, source=_DOC)
def id_for_an_id(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A property that takes the id of a VPC, subnet, group, image or the like has no name in it."""
    for path, name, value in _named(inputs):
        prefix = "" if value.startswith(_PARAMETER) else _PREFIXES.get(name, "")
        if prefix and not _is_id(value, prefix) and not site.exists(value):
            yield _no_id(path, value, prefix)


@BOOK.rule_around("AWS-REF-003", *_IMAGES, source=f"{_DOC}; launch templates also take resolve:ssm:NAME")
def image_id(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The image of a template is an id, or a parameter of Systems Manager that holds one."""
    for path, value in each(inputs, "imageId"):
        given = isinstance(value, str) and value and not value.startswith(_PARAMETER)
        if given and not _is_id(value, "ami") and not site.exists(value):
            yield _no_id(path, value, "ami")


@BOOK.rule_around(
    "AWS-REF-004",
    EVERY,
    source="EC2 user guide, Regions and Zones: a zone is named by its region and a letter, or a place",
)
def zone_of_the_region(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A property that takes the name of a zone has one of the region of the request."""
    for path, name, value in _named(inputs):
        if name in _ZONES and site.region and not value.startswith(site.region):
            yield Violation(
                path,
                f"{value} is no zone of {site.region}",
                f"Use a zone such as {site.region}a.",
                "InvalidParameterValue",
            )


def _is_id(value: str, prefix: str) -> bool:
    return re.fullmatch(rf"{prefix}-[0-9a-z]+", value) is not None


def _no_id(path: str, value: str, prefix: str) -> Violation:
    fix = f"Use an id such as {prefix}-0123456789abcdef0, from an output or a lookup."
    return Violation(path, f'Invalid id: "{value}" (expecting "{prefix}-...")', fix, "InvalidParameterValue")


def _managed(inputs: Properties) -> Iterator[tuple[str, str, str]]:
    """(path, path of the policy, its name) of each policy of AWS that is not in the list."""
    for path in dict.fromkeys(_POLICIES.values()):
        for here, arn in each(inputs, path):
            if isinstance(arn, str) and arn.startswith(_MANAGED):
                folder, slash, name = arn.removeprefix(_MANAGED).rpartition("/")
                if values.managed_policies().get(name) != f"{folder}{slash}":
                    yield here, f"{folder}{slash}", name


@BOOK.rule("AWS-IAM-017", *_POLICIES, source=f"{values.source()}: managed policies")
def misspelt_policy(inputs: Properties) -> Iterator[Violation]:
    """A managed policy of AWS has its own path, and is not a misspelling of a known one."""
    for path, _, name in _managed(inputs):
        near = name if name in values.managed_policies() else _meant(name)
        if near:
            fix = f"Did you mean {_MANAGED}{values.managed_policies()[near]}{near}?"
            yield Violation(path, f"Policy {name} does not exist or is not attachable", fix, "NoSuchEntity")


@BOOK.rule_around("AWS-IAM-018", *_POLICIES, source=f"{values.source()}: managed policies", advice=True)
def unknown_policy(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A managed policy of AWS is one of the list, which may be older than it."""
    for path, _, name in _managed(inputs):
        if name not in values.managed_policies() and not _meant(name):
            yield Violation(path, f"no list has the managed policy {name}", "Check its name.")


def _meant(name: str) -> str:
    """The known policy that a name misspells; a longer name or another number is a policy of its own."""
    for near in difflib.get_close_matches(name, values.managed_policies(), n=3, cutoff=_MISSPELT):
        same = re.findall(r"\d+", near) == re.findall(r"\d+", name)
        if same and not name.startswith(near) and not near.startswith(name):
            return near
    return ""
