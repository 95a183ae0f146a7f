"""Plans of AWS Backup."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.properties import each
from policies.stack import Stack

_SELECTION = "aws:backup/selection:Selection"


def is_planned(resource: Resource, stack: Stack) -> bool:
    """Return whether a selection includes it, by ARN or by tag. Conditions are undetermined."""
    for selection in stack.all(_SELECTION):
        if any(_names(selection, resource, stack, "notResources")):
            continue
        tagged = (
            resource.tags.get(tag.get("key")) == tag.get("value")
            for _, tag in each(selection.props, "selectionTags")
        )
        if any(tagged) or any(_names(selection, resource, stack, "resources")):
            if selection.props.get("conditions"):
                raise UndeterminedError(f"the conditions of {selection.name} are not evaluated")
            return True
    return False


def _names(selection: Resource, resource: Resource, stack: Stack, property: str) -> Iterator[bool]:
    values: Any = selection.raw(property)
    for value in values or ():
        if not is_unknown(value) and "*" in value:
            yield fnmatchcase(str(resource.computed("arn")), value)
        else:
            yield stack.referred(selection, value, property, resource.kind) is resource
