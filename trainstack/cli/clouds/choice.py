"""The choice of a cloud: what commands use of AWS or Google Cloud."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainstack.cli.clouds.services import CloudServices


def services_of(cloud: str) -> CloudServices:
    """The services of the cloud of a spec or of a stack's outputs."""
    if cloud == "gcp":
        from trainstack.cli.clouds import gcp  # noqa: PLC0415 - the SDK of one cloud is slow to import

        return gcp
    from trainstack.cli.clouds import aws  # noqa: PLC0415

    return aws


def services_of_state(resources: Iterable[Mapping[str, Any]]) -> CloudServices:
    """The services of the cloud in which the resources of a state are."""
    return services_of("aws" if any(one["type"] == "pulumi:providers:aws" for one in resources) else "gcp")
