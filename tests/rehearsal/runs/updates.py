"""What an update did, and what it was refused for."""

import re
from typing import Any

import pytest
from pulumi import automation


def counts(changes: Any) -> dict[str, int]:
    """Operation -> number of resources, of an update's summary or a preview's."""
    return {str(getattr(kind, "value", kind)): count for kind, count in (changes or {}).items()}


def changes(result: automation.UpResult | automation.DestroyResult) -> dict[str, int]:
    """The same of a whole result."""
    return counts(result.summary.resource_changes)


def refused(stack: automation.Stack) -> str:
    """What an `up` that has to fail says, on one line."""
    with pytest.raises(automation.CommandError) as error:
        stack.up()
    return re.sub(r"\s+", " ", str(error.value))
