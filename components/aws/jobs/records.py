"""The key of a stack's own records without a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.account import AwsAccount, current_account
from components.aws.encryption import encryption_key
from components.aws.logs import logs_may_use
from components.aws.money.stopper import budgets_may_use_the_key
from components.base import Component, Options
from components.ordering import after
from infra.jobs.aws.account_logs import GROUPS, KEPT_KEY, RELEASED, EarlierLogs, earlier_logs


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
            _release(self, resource, group, key, earlier.key_arn)
        self.register_declared()


def _release(
    component: Component, name: str, group: Mapping[str, Any], key: pulumi.Resource, key_arn: str
) -> None:
    """Take key and tag of the stack from a group, which is not deleted from now on."""
    foreign = group.get("kmsKeyId")
    aws.cloudwatch.LogGroup(
        name,
        name=group["name"],
        retention_in_days=group.get("retentionInDays"),
        kms_key_id=None if foreign == key_arn else foreign,
        tags=RELEASED,
        opts=component.child(pulumi.ResourceOptions(retain_on_delete=True, depends_on=[key])),
    )


def deployed_logs() -> EarlierLogs:
    """Log groups of the account in the state of the stack whose program runs."""
    stack = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    # The engine crashes at the second question without a state (pulumi v3.259.0 pkg/backend/backend.go,
    # GetStackResourceOutputs).
    outputs = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": stack}).value["outputs"]
    if not outputs:
        return EarlierLogs()
    found = pulumi.runtime.invoke("pulumi:pulumi:readStackResourceOutputs", {"stackName": stack}).value
    return earlier_logs({"urn": urn, **row} for urn, row in found["outputs"].items())
