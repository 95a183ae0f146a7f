"""Which components a profile composes on a cloud."""

from typing import Any

from infra.stackspec import StackSpec
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout
from stacks import aws


def compose(spec: StackSpec) -> dict[str, Any]:
    """Declare every resource of a stack; the result is what `infra.outputs.export` takes."""
    match spec.layout, spec.on:
        case MediumLayout() as layout, AwsSpec() as cloud:
            return aws.compose(spec, layout, cloud)
    raise NotImplementedError(f"{spec.profile} on {spec.cloud}")
