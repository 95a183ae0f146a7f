"""Counts of changes and errors of updates."""

import re
from typing import Any

import pytest
from pulumi import automation


def counts(changes: Any) -> dict[str, int]:
    """Operation -> number of resources, from the summary of an update or preview."""
    return {str(getattr(kind, "value", kind)): count for kind, count in (changes or {}).items()}


def changes(result: automation.UpResult | automation.DestroyResult) -> dict[str, int]:
    """The same for a whole result."""
    return counts(result.summary.resource_changes)


def refused(stack: automation.Stack) -> str:
    """Error of an `up` that must fail, on one line."""
    with pytest.raises(automation.CommandError) as error:
        stack.up()
    return re.sub(r"\s+", " ", str(error.value))
