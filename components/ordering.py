"""Order between resources that no value of the cloud expresses."""

from collections.abc import Iterable
from typing import TypeVar

import pulumi

T = TypeVar("T")


def after(value: pulumi.Output[T], resources: Iterable[pulumi.Resource]) -> pulumi.Output[T]:
    """`value`, with dependents created after `resources` and destroyed before them.

    A consumer then needs no `depends_on`: a subnet id of this function comes with its routes.
    URNs, unlike ids, are known in a preview, so a known value stays known there.
    """
    urns = pulumi.Output.all(*(resource.urn for resource in resources))
    return pulumi.Output.all(value=value, urns=urns).apply(_value)


def _value(resolved: dict[str, T]) -> T:
    return resolved["value"]
