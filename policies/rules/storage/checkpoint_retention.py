"""Minimum retention of checkpoints."""

import math
from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.properties import each
from policies.rules.storage.buckets import GCS, S3, is_for, is_versioned, settings_of
from policies.stack import Stack


@CATALOG.rule_around(
    "MLS-STO-12",
    "medium",
    (*S3, GCS),
    "A rule that deletes checkpoints within days deletes those that a run needs to resume after a"
    " weekend, and the evidence of the training.",
    "Let objects expire later, and versions that are no longer current, too.",
    ("S3 User Guide, lifecycle-expire-general-considerations",),
)
def checkpoints_stay_long_enough(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """No lifecycle rule deletes checkpoints before the minimum age."""
    if not is_for(bucket, stack.settings.checkpoint_words):
        raise NotApplicableError("it holds no checkpoints")
    least = stack.settings.least_checkpoint_days
    found = _of_google(bucket, stack) if bucket.kind == GCS else _of_amazon(bucket, stack)
    for holder, path, days in found:
        if days < least:
            yield Violation(
                f"objects are deleted after {days:g} days, earlier than {least}", path, resource=holder
            )


_Days = tuple[Resource, str, float]


def _of_amazon(bucket: Resource, stack: Stack) -> Iterator[_Days]:
    """(resource, property, days until deletion) of each enabled rule for current objects.

    With versions, an expired object becomes a noncurrent version, and is deleted with those, or never.
    """
    rules = list(_rules(bucket, stack))
    kept = 0.0
    if is_versioned(bucket, stack):
        later = [
            float(action.get("noncurrentDays") or action.get("days") or 0)
            for _, _, rule in rules
            for key in ("noncurrentVersionExpiration", "noncurrentVersionExpirations")
            for _, action in each(rule, key)
        ]
        kept = min(later, default=math.inf)
    for holder, path, rule in rules:
        for key in ("expiration", "expirations"):
            for below, action in each(rule, key, path=path):
                if action.get("days"):
                    yield holder, below, float(action["days"]) + kept


def _rules(bucket: Resource, stack: Stack) -> Iterator[tuple[Resource, str, Any]]:
    """(resource, property, rule) of the enabled rules."""
    for one in settings_of(bucket, stack, "bucketLifecycleConfiguration"):
        yield from ((one, *rule) for rule in each(one.props, "rules") if rule[1].get("status") == "Enabled")
    yield from ((bucket, *rule) for rule in bucket.items("lifecycleRules") if rule[1].get("enabled") is True)


def _of_google(bucket: Resource, stack: Stack) -> Iterator[_Days]:
    versions = is_versioned(bucket, stack)
    for path, rule in bucket.items("lifecycleRules"):
        when = rule.get("condition") or {}
        state = when.get("withState") or "ANY"
        # Only noncurrent versions; or current ones, which become noncurrent.
        older = when.get("daysSinceNoncurrentTime") or when.get("numNewerVersions")
        if older or state == "ARCHIVED" or (versions and state == "LIVE"):
            continue
        if (rule.get("action") or {}).get("type") == "Delete" and when.get("age") is not None:
            yield bucket, f"{path}.condition.age", float(when["age"])
