"""What only one cloud asks: one model per cloud."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Model

Acu = Annotated[float, Field(ge=0, le=256, multiple_of=0.5)]
"""Aurora capacity units, in steps of 0.5."""


class AuroraSpec(Model):
    """The PostgreSQL database of the tracking server: Aurora Serverless v2."""

    min_acu: Acu
    """Smallest size in capacity units; 0 lets the database pause when idle: the next request then waits."""

    max_acu: Annotated[float, Field(ge=1, le=256, multiple_of=0.5)]
    """Largest size in capacity units; one unit is about 2 GiB of memory."""


class AwsSpec(Model):
    """What AWS asks besides."""

    cloud: Literal["aws"]
    """Set by `trainstack:cloud`."""

    admin_arns: Annotated[tuple[str, ...], Field(min_length=1)]
    """IAM roles or users with cluster-admin rights, the one that deploys included."""

    nat: Literal["single", "per_zone"]
    """`single`: one NAT gateway (cheaper; its zone is a single point of failure). `per_zone`: one in each."""

    endpoints: tuple[str, ...]
    """AWS services reached without the internet, by the last part of their service name (`ecr.api`)."""

    efa_driver: Literal["device_plugin", "dra"]
    """How EFA devices reach pods: the device plugin, or Dynamic Resource Allocation."""

    database: AuroraSpec
    """The database of the tracking server."""


class GcpSpec(Model):
    """What Google Cloud asks besides."""

    cloud: Literal["gcp"]
    """Set by `trainstack:cloud`."""

    project: str
    """Id of the project."""

    channel: Literal["rapid", "regular", "stable", "extended"]
    """Release channel of the cluster."""

    database_tier: str
    """Machine tier of the Cloud SQL database of the tracking server."""


class ExistingSpec(Model):
    """A Kubernetes cluster that is already there, on premises or elsewhere."""

    cloud: Literal["existing"]
    """Set by `trainstack:cloud`."""

    kubeconfig_context: str
    """Context of the kubeconfig that reaches the cluster."""

    store_uri: str
    """Object store for checkpoints and artifacts, such as `s3://bucket/prefix`."""

    node_labels: dict[str, dict[str, str]]
    """Labels of the nodes of each pool, by name of the pool."""


CloudSpec = Annotated[AwsSpec | GcpSpec | ExistingSpec, Field(discriminator="cloud")]
"""What the cloud asks besides, by cloud."""
