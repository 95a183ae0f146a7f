"""A Kubernetes object of a kind that the SDK does not type."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

import pulumi


class Manifest(pulumi.CustomResource):
    """The object that `body` (apiVersion, kind, metadata and the rest) describes.

    It is the resource `apiextensions.CustomResource` makes, with the same type token; that class only takes
    `metadata` and `spec`, and some kinds (WorkloadPriorityClass) keep their fields at the top level.
    """

    def __init__(self, name: str, body: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        sdk = pulumi.ResourceOptions(version=importlib.metadata.version("pulumi-kubernetes"))
        super().__init__(
            f"kubernetes:{body['apiVersion']}:{body['kind']}",
            name,
            dict(body),
            pulumi.ResourceOptions.merge(opts, sdk),
        )
