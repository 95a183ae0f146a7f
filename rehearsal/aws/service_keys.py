"""Keys that AWS manages for its services, which every account has or gets with the first request for them."""

from typing import Final

from rehearsal.aws.site import Site
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties

PREFIX: Final = "alias/aws/"
# AWS KMS Developer Guide, "AWS managed keys", and the guides of the services.
_SERVICES = (
    "backup",
    "dynamodb",
    "ebs",
    "elasticfilesystem",
    "fsx",
    "kinesis",
    "lambda",
    "rds",
    "s3",
    "secretsmanager",
    "sns",
    "sqs",
    "ssm",
)


def service_key(site: Site, alias: str) -> Properties:
    """The key behind an alias such as `alias/aws/ebs`."""
    drawn = draw(f"{site.account}{site.region}{alias}", 32)
    identifier = f"{drawn[:8]}-{drawn[8:12]}-{drawn[12:16]}-{drawn[16:20]}-{drawn[20:]}"
    arn = f"arn:aws:kms:{site.region}:{site.account}:key/{identifier}"
    return {"id": identifier, "arn": arn, "enabled": True, "keyState": "Enabled"}


def is_service_key(site: Site, arn: str) -> bool:
    """Return whether the ARN is that of a service's key in the region of the request."""
    return any(arn == service_key(site, f"{PREFIX}{name}")["arn"] for name in _SERVICES)
