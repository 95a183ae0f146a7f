"""The key of a stack's own records without a cluster."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.account import AwsAccount, current_account
from components.aws.encryption import encryption_key
from components.aws.logs import logs_may_use
from components.aws.money.stopper import budgets_may_use_the_key
from components.base import Component, Options
from components.engine_state import asked, reference
from components.ordering import after
from infra.jobs.aws.account_logs import (
    GROUPS,
    KEPT_KEY,
    PREFIX,
    RELEASED,
    RESOURCES,
    EarlierLogs,
    earlier_logs,
)

# Of the provider's `findAliasByName` (hashicorp/terraform-provider-aws internal/service/kms/alias.go), and of
# KMS.
_ABSENT = re.compile("empty result|couldn't find|NotFoundException")


class AwsRecordsArgs(TypedDict):
    """Log groups under the key."""

    region: str
    log_groups: Sequence[str]
    """Their names."""
    earlier: NotRequired[EarlierLogs]
    """The account's log groups that the stack has from an earlier version. Default: none."""


class AwsRecords(Component):
    """A key for logs and for messages of budgets.

    From stacks of an earlier version, the next `up` releases the log groups of the account; the one after it
    forgets them. The key then outlives the stack.
    """

    kms_key_arn: pulumi.Output[str]
    """The key; its users come after its policy."""

    def __init__(self, name: str, args: AwsRecordsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        earlier = args.get("earlier", EarlierLogs())
        kept = bool(earlier.key_arn)

        def statements(owner: AwsAccount) -> list[Mapping[str, object]]:
            groups = [*(GROUPS if kept else ()), *args["log_groups"]]
            used = [one for group in groups for one in logs_may_use(args["region"], group)(owner)]
            # A key policy has each statement once.
            numbered = [{**one, "Sid": f"{one['Sid']}{index}"} for index, one in enumerate(used)]
            return [*numbered, budgets_may_use_the_key(owner)]

        key = encryption_key(
            self,
            f"{name}-key",
            account=current_account(self),
            purpose=f"Logs and messages of {name}",
            statements=statements,
            tags=KEPT_KEY if kept else None,
            retain=kept,
        )
        self.kms_key_arn = after(key.arn, [key])
        for resource, group in earlier.groups.items():
            _release(self, resource, group, key, earlier)
        self.register_declared()


def _release(
    component: Component, name: str, group: Mapping[str, Any], key: pulumi.Resource, earlier: EarlierLogs
) -> None:
    """Take key and tag of the stack from a group, which is not deleted from now on."""
    foreign = group.get("kmsKeyId")
    # Nothing can be changed of a group that an administrator has deleted.
    fixed = ["*"] if group["name"] in earlier.missing else None
    aws.cloudwatch.LogGroup(
        name,
        name=group["name"],
        retention_in_days=group.get("retentionInDays"),
        kms_key_id=None if foreign == earlier.key_arn else foreign,
        tags=RELEASED,
        opts=component.child(
            pulumi.ResourceOptions(retain_on_delete=True, depends_on=[key], ignore_changes=fixed)
        ),
    )


def deployed_logs(name: str, opts: pulumi.InvokeOptions) -> EarlierLogs:
    """Log groups of the account in the state of this stack; `name` is that of its records.

    A deployment that never finished has no outputs, and the engine crashes when resources are asked of a
    stack that never had any (pulumi v3.259.0 pkg/backend/backend.go, GetStackResourceOutputs). So the account
    is asked before: the alias of the key exists from the first deployment of the records to their end.
    During a preview another stack of this name may have it while this one has no state: groups with the key
    are shown as those of the stack.
    """
    stack = reference(pulumi.get_stack())
    if asked("readStackOutputs", {"name": stack}):
        earlier = _in_state(stack)
        return replace(earlier, missing=_missing(opts)) if earlier.groups else earlier
    missing = _missing(opts)
    found = [group for group in GROUPS if group not in missing]
    key_arn = _key_of(name, opts) if found else ""
    if not key_arn:
        return EarlierLogs()
    if not pulumi.runtime.is_dry_run():
        return replace(_in_state(stack), missing=missing)
    groups = {f"{name}-{RESOURCES[one]}": aws.cloudwatch.get_log_group(one, opts=opts) for one in found}
    own = {
        resource: {"name": one.name, "kmsKeyId": key_arn, "retentionInDays": one.retention_in_days}
        for resource, one in groups.items()
        if one.kms_key_id == key_arn
    }
    return EarlierLogs(own, key_arn if own else "")


def _in_state(stack: str) -> EarlierLogs:
    found = asked("readStackResourceOutputs", {"stackName": stack})
    return earlier_logs({"urn": urn, **row} for urn, row in found.items())


def _missing(opts: pulumi.InvokeOptions) -> frozenset[str]:
    """Groups of the account that do not exist."""
    found = aws.cloudwatch.get_log_groups(log_group_name_prefix=PREFIX, opts=opts).log_group_names
    return frozenset(GROUPS) - {*found}


def _key_of(name: str, opts: pulumi.InvokeOptions) -> str:
    """The ARN of the key of records in the account; empty without one."""
    try:
        return aws.kms.get_alias(name=f"alias/{name}-key", opts=opts).target_key_arn
    except Exception as error:  # the SDK has no other type
        if not _ABSENT.search(str(error)):
            raise
        return ""
