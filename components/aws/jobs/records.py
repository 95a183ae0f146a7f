"""The key of a stack's own records without a cluster, and the logs of its training jobs."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.account import AwsAccount, current_account
from components.aws.encryption import encryption_key
from components.aws.jobs.running_rights import JOB_LOGS, NOTEBOOK_LOGS
from components.aws.logs import log_group, logs_may_use
from components.aws.money.stopper import budgets_may_use_the_key
from components.base import Component, Options
from components.ordering import after
from infra.naming import TAG_PREFIX


class AwsRecordsArgs(TypedDict):
    """Retention of logs, and further groups under the same key."""

    region: str
    log_retention_days: int
    log_groups: Sequence[str]
    """Names of further groups under the key."""
    release_notebook_logs: NotRequired[bool]
    """Release the group of notebooks, which an earlier version has made: see `has_notebook_logs`."""


class AwsRecords(Component):
    """A key for logs and for messages of budgets, and the group in which training jobs log.

    That group is one for the whole account in a region, and its name is SageMaker's: a second stack without a
    cluster needs another account or region. Without it the service creates one, unencrypted, without
    retention. The group of notebooks belongs to all domains of the account, so no stack has it: SageMaker
    creates it with the first notebook, if it is absent.
    """

    kms_key_arn: pulumi.Output[str]
    """The key; its users come after its policy."""
    job_log_group: pulumi.Output[str]

    def __init__(self, name: str, args: AwsRecordsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)

        def statements(owner: AwsAccount) -> list[Mapping[str, object]]:
            # Notebooks: what earlier versions have logged under the key stays readable.
            groups = [JOB_LOGS, NOTEBOOK_LOGS, *args["log_groups"]]
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
        )
        self.kms_key_arn = after(key.arn, [key])
        jobs = log_group(
            self,
            f"{name}-jobs",
            log_group_name=JOB_LOGS,
            retention_days=args["log_retention_days"],
            key_arn=key.arn,
        )
        if args.get("release_notebook_logs", False):
            # Without the stack's key, which `destroy` deletes. The next deployment forgets the group.
            aws.cloudwatch.LogGroup(
                f"{name}-notebooks",
                name=NOTEBOOK_LOGS,
                retention_in_days=args["log_retention_days"],
                opts=self.child(pulumi.ResourceOptions(retain_on_delete=True)),
            )
        self.job_log_group = jobs.name
        self.register_declared()


def has_notebook_logs(stack: str, opts: pulumi.InvokeOptions) -> bool:
    """Return whether the stack has the group of notebooks, with tag and key, from an earlier version."""
    names = aws.cloudwatch.get_log_groups(log_group_name_prefix=NOTEBOOK_LOGS, opts=opts).log_group_names
    if NOTEBOOK_LOGS not in names:
        return False
    found = aws.cloudwatch.get_log_group(name=NOTEBOOK_LOGS, opts=opts)
    return bool(found.kms_key_id) and found.tags.get(f"{TAG_PREFIX}:stack") == stack
