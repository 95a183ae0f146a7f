"""Verdicts of rules about the objects of a state and about the same objects in a cluster."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from policies.catalog import PolicyRule
from policies.coverage import WHOLE, Coverage
from policies.evaluate import evaluate
from policies.resource import Resource
from policies.settings import RuleSettings
from policies.stack import Stack

SETTINGS = RuleSettings(today=datetime.date(2026, 11, 23))
Verdicts = dict[tuple[str, Any], set[tuple[str, str, str]]]
"""By rule and object, or None for the stack: results with what was found, and where."""


def place(one: Resource) -> tuple[str, Any, Any]:
    """Kind, namespace and name."""
    about = one.props.get("metadata") or {}
    return one.kind, about.get("namespace"), about.get("name")


def verdicts(rules: Iterable[PolicyRule], found: Sequence[Resource], coverage: Coverage = WHOLE) -> Verdicts:
    """Verdicts about Kubernetes objects only."""
    verdicts_by_place: Verdicts = {}
    for one in evaluate(Stack(found, SETTINGS, coverage), rules):
        if one.resource is None or one.resource.kind.startswith("kubernetes:"):
            key = one.rule.id, place(one.resource) if one.resource else None
            verdicts_by_place.setdefault(key, set()).add((one.result, one.message, one.path))
    return verdicts_by_place
