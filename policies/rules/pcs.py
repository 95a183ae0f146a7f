"""Compute node groups of AWS PCS, which stacks have through Cloud Control (docs/adr/0096).

Their state is one JSON text: during a preview the whole of it is unknown, as it names ids.
"""

import json
from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown
from policies.stack import Stack

KIND = "aws:cloudcontrol/resource:Resource"
_GROUP = "AWS::PCS::ComputeNodeGroup"


def machines_of(template: Resource, stack: Stack) -> list[str]:
    """Machine types of the groups whose nodes start by a launch template.

    Raises UndeterminedError where a group, or the id of the template, is not known.
    """
    found: list[str] = []
    for group in stack.reported(KIND):
        if group.props.get("typeName") != _GROUP:
            continue
        state = group.raw("desiredState")
        if is_unknown(state) or is_unknown(template.id):
            raise UndeterminedError(f"the launch template of {group.name} is not known")
        known = _object(state)
        if (known.get("CustomLaunchTemplate") or {}).get("TemplateId") == template.id:
            found += [str(one.get("InstanceType")) for one in known.get("InstanceConfigs") or ()]
    return found


def _object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
