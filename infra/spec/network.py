"""The network of a stack."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from infra.spec.model import LogRetentionDays, Model


class NetworkSpec(Model):
    """One VPC with a public and a private subnet per zone; nodes live in the private ones."""

    cidr: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+\.\d+/\d+$")]
    """IPv4 range of the VPC, /16 to /18: every GPU node takes an address per pod and per EFA interface."""

    zones: Annotated[tuple[str, ...], Field(min_length=2, max_length=6)]
    """Availability zones of the region; EKS needs at least two."""

    nat: Literal["single", "per_zone"]
    """`single`: one NAT gateway (cheaper; its zone is a single point of failure). `per_zone`: one in each."""

    flow_log_retention_days: LogRetentionDays
    """How long VPC flow logs are kept, in days."""

    interface_endpoints: tuple[str, ...]
    """AWS services reached without the internet, by the last part of their service name (`ecr.api`)."""
