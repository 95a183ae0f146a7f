"""The rows of AWS; `core.emulation.table` explains the columns."""

import re
from collections.abc import Container
from pathlib import Path

from rehearsal.core.emulation.table import Row, Table

# Services without regions, whose resources are seen from each: AWS General Reference, "Global services".
_GLOBAL = frozenset({"cloudfront", "globalaccelerator", "iam", "organizations", "route53"})


def _generic(token: str, properties: Container[str]) -> Row:
    service, _, kind = token.removeprefix("aws:").partition("/")
    kind, named = kind.partition(":")[0], "name" in properties
    leaf = "{name}" if named else "{id}"
    return Row(
        token=token,
        id="{name}-{hex8}" if named else f"{kind.lower()}-{{hex17}}",
        link=f"arn:aws:{service}:{{region}}:{{account}}:{kind}/{leaf}",
        name="name" if named else "",
        replace=("name", "namePrefix", "availabilityZone"),
        known=False,
        place="global" if service in _GLOBAL else "",
    )


TABLE = Table(
    "aws",
    Path(__file__).with_name("tables"),
    _generic,
    Path(__file__).with_name("provider") / "changes.json",
)

# pulumi-aws 7: aliases and deprecation messages of the classes in the SDK.
_RENAMED = (
    (re.compile(r"aws:(?:alb|applicationloadbalancing|elasticloadbalancingv2)/"), "aws:lb/"),
    (re.compile(r"aws:elasticloadbalancing/"), "aws:elb/"),
    (re.compile(r"aws:(s3/[bB]ucket\w*)V2:(\w+)V2$"), r"aws:\1:\2"),
    (re.compile(r"aws:ec2/encryptionControl:E"), "aws:ec2/vpcEncryptionControl:VpcE"),
    (re.compile(r"aws:lambda/microvmsImage:MicrovmsImage"), "aws:lambdamicrovms/image:Image"),
    (re.compile(r"aws:vpn/getConnection:getConnection"), "aws:ec2/getVpnConnection:getVpnConnection"),
)


def canonical(token: str) -> str:
    """The current token for a deprecated or second name of a type or function; else the token itself."""
    for pattern, name in _RENAMED:
        token = pattern.sub(name, token)
    return token
