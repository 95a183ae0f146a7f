"""A Kubernetes object of a kind that the SDK does not type."""

import functools
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
        sdk = pulumi.ResourceOptions(version=_version())
        super().__init__(
            f"kubernetes:{body['apiVersion']}:{body['kind']}",
            name,
            dict(body),
            pulumi.ResourceOptions.merge(opts, sdk),
        )


@functools.cache
def _version() -> str:
    """The SDK's; each look reads and parses a file."""
    return importlib.metadata.version("pulumi-kubernetes")
