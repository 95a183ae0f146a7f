"""EventBridge rules and their event patterns."""

import json
from collections.abc import Iterator
from typing import Any

from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import text
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation

_RULE = "aws:cloudwatch/eventRule:EventRule"


@BOOK.rule(
    "AWS-EVT-002",
    _RULE,
    source='EventBridge user guide, "Creating event patterns"; messages in getmoto/moto events/models.py',
)
def pattern_of_events(inputs: Properties) -> Iterator[Violation]:
    """A pattern is an object of objects, whose values are lists of matches."""
    pattern = text(inputs.get("eventPattern"))
    # An empty one is none: the provider leaves it out (internal/service/events/rule.go, GetOk).
    for reason in _faults(pattern) if pattern else ():
        message = f"Event pattern is not valid. Reason: {reason}"
        fix = 'Write each value as a list: {"source": ["aws.sagemaker"]}.'
        yield Violation("eventPattern", message, fix, "InvalidEventPatternException")


def _faults(pattern: str) -> Iterator[str]:
    try:
        found = json.loads(pattern)
    except ValueError:
        yield "Invalid JSON"
        return
    yield from _faults_of(found) if isinstance(found, dict) else ("Filter is not an object",)


def _faults_of(found: dict[str, Any]) -> Iterator[str]:
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _faults_of(value)
        elif not isinstance(value, list):
            yield f"'{name}' must be an object or an array"
        elif not value:
            yield "Empty arrays are not allowed"
