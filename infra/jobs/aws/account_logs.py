"""Log groups that SageMaker has once in an account and region, and what earlier stacks own of them (pure).

No stack creates, changes or deletes them: their names are the service's, and others log there, too (ADR 64).
Earlier versions owned them, encrypted with the key of the stack's records.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from infra.naming import TAG_PREFIX

PREFIX: Final = "/aws/sagemaker/"
JOB_LOGS: Final = f"{PREFIX}TrainingJobs"
"""The log group of every training job; the service supports no other."""
NOTEBOOK_LOGS: Final = f"{PREFIX}studio"
"""That of the notebooks of all domains."""
RESOURCES: Final = {JOB_LOGS: "jobs", NOTEBOOK_LOGS: "notebooks"}
"""Endings of the names of their resources in earlier stacks."""
GROUPS: Final = (*RESOURCES,)
RELEASED: Final = {f"{TAG_PREFIX}:stack": "released"}
"""Tag of a group that its stack has released, in place of the stack's name."""
KEPT_KEY: Final = {f"{TAG_PREFIX}:keeps": "logs-of-the-account"}
"""Tag of a key that outlives its stack: what was logged with it stays encrypted with it.

Source: CloudWatch Logs user guide, "Encrypt log data in CloudWatch Logs using AWS KMS".
"""
_PARENT = "trainstack:index:AwsRecords$"
_GROUP, _KEY = f"{_PARENT}aws:cloudwatch/logGroup:LogGroup", f"{_PARENT}aws:kms/key:Key"

Rows = Iterable[Mapping[str, Any]]
"""Resources of a state: `urn`, `outputs`, `retainOnDelete`."""


@dataclass(frozen=True)
class EarlierLogs:
    """Log groups of the account that a stack of an earlier version owns, and their key."""

    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Groups to release: outputs by name of the resource. None once all are released."""
    key_arn: str = ""
    """The key of the stack's records, if groups are or were encrypted with it."""
    missing: frozenset[str] = frozenset()
    """Names of groups that an administrator has deleted."""


def earlier_logs(resources: Rows) -> EarlierLogs:
    """The groups in a state, and their key."""
    rows = [*resources]
    groups = {one["urn"].rpartition("::")[2]: one["outputs"] for one in _groups(rows)}
    released = all(_has(one, RELEASED) for one in groups.values())
    key: Mapping[str, Any] = next((one["outputs"] for one in rows if _is(one, _KEY)), {})
    # Its policy alone: a `destroy` that was interrupted has forgotten the groups, which still have the key.
    used = any(f"log-group:{group}" in key.get("policy", "") for group in GROUPS)
    kept = bool(groups) or used or _has(key, KEPT_KEY)
    return EarlierLogs({} if released else groups, key.get("arn", "") if kept else "")


def to_retain(resources: Rows) -> list[str]:
    """URNs of groups of the account in a state, and of their key, that `destroy` would delete."""
    rows = [*resources]
    groups = [*_groups(rows)]
    found = [*groups, *(one for one in rows if groups and _is(one, _KEY))]
    return [one["urn"] for one in found if not one.get("retainOnDelete")]


def _groups(rows: Rows) -> Iterator[Mapping[str, Any]]:
    return (one for one in rows if _is(one, _GROUP) and one["outputs"].get("name") in GROUPS)


def _is(row: Mapping[str, Any], kind: str) -> bool:
    return f"::{kind}::" in row["urn"]


def _has(outputs: Mapping[str, Any], tags: Mapping[str, str]) -> bool:
    return (outputs.get("tags") or {}).items() >= tags.items()
