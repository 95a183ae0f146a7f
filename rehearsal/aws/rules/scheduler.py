"""EventBridge Scheduler: the role of a schedule."""

import fnmatch
from collections.abc import Iterator
from typing import Any

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import document, many, text, trusts
from rehearsal.core.model import UNKNOWN, Properties, Record
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation

_SCHEDULE, _SERVICE = "aws:scheduler/schedule:Schedule", "scheduler.amazonaws.com"
_SOURCE = "aws:sourcearn"  # keys of conditions are case-insensitive


@BOOK.rule_around(
    "AWS-SCHED-001",
    _SCHEDULE,
    source='EventBridge Scheduler user guide, "Confused deputy prevention" (the ARN of a group, never of a '
    "schedule); messages in hashicorp/terraform-provider-aws internal/service/scheduler/retry.go",
)
def role_trusts_the_group(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The role lets the service take it, for the group of the schedule."""
    role, group = site.find(at(inputs, "target.roleArn"), "iam/role:Role"), inputs.get("groupName")
    if role is None or group == UNKNOWN:
        return
    arn = f"arn:aws:scheduler:{site.region}:{site.account}:schedule-group/{text(group) or 'default'}"
    if not trusts(role, _SERVICE) or not all(_fits(arn, pattern) for pattern in _sources(role)):
        yield Violation(
            "target.roleArn",
            "The execution role you provide must allow AWS EventBridge Scheduler to assume the role.",
            f"Let {_SERVICE} do sts:AssumeRole; a condition on aws:SourceArn has to be about {arn}.",
            "ValidationException",
        )


def _sources(role: Record) -> Iterator[Any]:
    """The patterns of each condition on the source in the role's trust policy; None without conditions."""
    policy = document(role.outputs.get("assumeRolePolicy"))
    statements = many(policy.get("Statement")) if isinstance(policy, dict) else []
    for statement in statements:
        for operator in (statement.get("Condition") or {}).values():
            yield from (many(value) for key, value in operator.items() if key.lower() == _SOURCE)


def _fits(arn: str, patterns: list[Any]) -> bool:
    return any(fnmatch.fnmatchcase(arn, str(pattern)) for pattern in patterns)
