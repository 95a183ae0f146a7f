"""Desired states of Cloud Control: resources by the name of their CloudFormation type (pure)."""

import json
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.core.model import Properties

RESOURCE: Final = "cloudcontrol/resource:Resource"
CLUSTER, GROUP, QUEUE = "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup", "AWS::PCS::Queue"
# pulumi-aws-native 1.84 sdk/python pcs (`replace_on_changes`), which follows the schemas of CloudFormation.
CREATE_ONLY: Final[Mapping[str, frozenset[str]]] = {
    CLUSTER: frozenset({"Name", "Networking", "Size"}),
    GROUP: frozenset({"ClusterId", "InstanceConfigs", "Name"}),
    QUEUE: frozenset({"ClusterId", "Name"}),
}


def state_of(inputs: Properties) -> Mapping[str, Any] | None:
    """The desired state; None while it is unknown or is no JSON object."""
    text = inputs.get("desiredState")
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def replaced(kind: object, old: Properties, new: Properties) -> bool:
    """Return whether a change of the desired state replaces the resource."""
    before, after = state_of(old), state_of(new)
    if before is None or after is None:
        return False
    return any(before.get(one) != after.get(one) for one in CREATE_ONLY.get(str(kind), ()))
