"""Which components a profile composes on a cloud."""

from collections.abc import Callable, Mapping
from typing import Any

from infra.spec import StackSpec
from stacks import aws

_CLOUDS: Mapping[str, Callable[[StackSpec], dict[str, Any]]] = {"aws": aws.compose}


def compose(spec: StackSpec) -> dict[str, Any]:
    """Declare every resource of a stack; the result is what `infra.outputs.export` takes."""
    return _CLOUDS[spec.cloud](spec)
