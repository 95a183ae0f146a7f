"""Rights of previews and nightly checks: they read the account, and change nothing."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from infra.stackspec import StackSpec
from trainstack.bootstrap.aws.preflight_rights import RIGHTS
from trainstack.bootstrap.aws.rights import PUBLIC_PARAMETERS, Statement, allow, patterns_of
from trainstack.collect.documentation import rights as audited
from trainstack.preflight.aws.permissions import actions, by_resource, fields_of

_READS = re.compile(r"[a-z0-9-]+:(BatchGet|Describe|Get|List|View)")
_CONTENT: Final = frozenset({"logs:GetLogEvents", "s3:GetObject", "ssm:GetParameters"})
"""Reads of data: of a stack's own resources, by nightly checks alone."""
_AT_ONCE = 100
_ARNS = 40
"""Of a statement, which must fit into a policy."""


def statements(specs: Sequence[StackSpec], *, audits: bool) -> list[Statement]:
    """Reads of what the stacks consist of; `audits`: also those of an audit and of the last validation."""
    wanted = {*RIGHTS, *(audited() if audits else ())}
    for spec in specs:
        wanted |= {*actions(spec)}
    reads = sorted(one for one in wanted - _CONTENT if _READS.match(one))
    found = [allow(reads[start : start + _AT_ONCE], ["*"]) for start in range(0, len(reads), _AT_ONCE)]
    found.append(allow(["ssm:GetParameters"], [PUBLIC_PARAMETERS]))
    return [*found, *(_contents(specs) if audits else ())]


def _contents(specs: Sequence[StackSpec]) -> Iterator[Statement]:
    for action in sorted(_CONTENT - {"ssm:GetParameters"}):
        found = {
            pattern.format(**fields_of(spec))
            for spec in specs
            for arn, names in by_resource(spec).items()
            if action in names and arn != "*"
            for pattern in patterns_of(arn)
        }
        arns = sorted(found)
        yield from (allow([action], arns[start : start + _ARNS]) for start in range(0, len(arns), _ARNS))
