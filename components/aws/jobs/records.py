"""The key of a stack's own records without a cluster, and the logs of its training jobs and notebooks."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import pulumi

from components.aws.account import AwsAccount, current_account
from components.aws.encryption import encryption_key
from components.aws.jobs.running_rights import JOB_LOGS, NOTEBOOK_LOGS
from components.aws.logs import log_group, logs_may_use
from components.aws.money.stopper import budgets_may_use_the_key
from components.base import Component, Options
from components.ordering import after


class AwsRecordsArgs(TypedDict):
    """Retention of logs, and further groups under the same key."""

    region: str
    log_retention_days: int
    log_groups: Sequence[str]
    """Names of further groups under the key."""


class AwsRecords(Component):
    """A key for logs and for messages of budgets, and the groups in which training jobs and notebooks log.

    Each group is one for the whole account in a region, and its name is SageMaker's: a second stack without a
    cluster needs another account or region. Without that of jobs the service creates one, unencrypted,
    without retention; without that of notebooks nothing is logged, as their roles may not create it.
    """

    kms_key_arn: pulumi.Output[str]
    """The key; its users come after its policy."""
    job_log_group: pulumi.Output[str]

    def __init__(self, name: str, args: AwsRecordsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)

        def statements(owner: AwsAccount) -> list[Mapping[str, object]]:
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
        jobs, _ = (
            log_group(
                self,
                f"{name}-{what}",
                log_group_name=group,
                retention_days=args["log_retention_days"],
                key_arn=key.arn,
            )
            for what, group in (("jobs", JOB_LOGS), ("notebooks", NOTEBOOK_LOGS))
        )
        self.job_log_group = jobs.name
        self.register_declared()
