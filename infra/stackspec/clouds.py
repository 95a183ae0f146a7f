"""Settings of the cloud of a stack: one model per cloud, in `aws/` and `gcp/`."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.model import CloudModel


class ExistingSpec(CloudModel):
    """An existing Kubernetes cluster, on premises or elsewhere."""

    cloud: Literal["existing"]
    """An existing cluster instead of a cloud, set by `trainstack:cloud`."""

    kubeconfig_context: str
    """Context of the cluster in the kubeconfig."""

    store_uri: str
    """Object store for checkpoints and artifacts, such as `s3://bucket/prefix`."""

    node_labels: dict[str, dict[str, str]]
    """Labels of the nodes of each pool, by name of the pool."""


CloudSpec = Annotated[AwsSpec | GcpSpec | ExistingSpec, Field(discriminator="cloud")]
"""Settings of the cloud."""
