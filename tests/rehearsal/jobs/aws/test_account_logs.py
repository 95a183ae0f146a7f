"""Stacks of an earlier version release the account's log groups, with a real engine: no log is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.account import current_account
from components.aws.encryption import encryption_key
from components.aws.jobs import records
from components.aws.logs import logs_may_use
from components.base import Component
from infra.engine.stack import EngineStack
from infra.jobs.aws.account_logs import GROUPS, JOB_LOGS, NOTEBOOK_LOGS
from rehearsal.client import Rehearsal
from tests.rehearsal.frugal import FrugalStack
from tests.rehearsal.runs.updates import changes
from trainstack.cli.operations.session import Session

Select = Callable[[Callable[[], None]], FrugalStack]
GROUP, KEY = "aws:cloudwatch/logGroup:LogGroup", "aws:kms/key:Key"


class AwsRecords(Component):
    """The records of earlier versions, which owned both groups."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(name, opts)
        used = [logs_may_use("us-east-1", group) for group in GROUPS]
        key = encryption_key(
            self,
            f"{name}-key",
            account=current_account(self),
            purpose="Logs",
            statements=lambda owner: [
                {**one, "Sid": f"Logs{index}"} for index, each in enumerate(used) for one in each(owner)
            ],
        )
        for ending, group in (("jobs", JOB_LOGS), ("notebooks", NOTEBOOK_LOGS)):
            aws.cloudwatch.LogGroup(
                f"{name}-{ending}",
                name=group,
                retention_in_days=90,
                kms_key_id=key.arn,
                opts=self.child(),
            )


def options() -> pulumi.ResourceOptions:
    tags = aws.ProviderDefaultTagsArgs(tags={"trainstack:stack": "dev"})
    provider = aws.Provider("dev-aws", region="us-east-1", default_tags=tags)
    return pulumi.ResourceOptions(providers=[provider])


def before() -> None:
    AwsRecords("dev-records", options())
    pulumi.export("deployed", "yes")


def now() -> None:
    args: Any = {"region": "us-east-1", "log_groups": [], "earlier": records.deployed_logs()}
    records.AwsRecords("dev-records", args, options())
    pulumi.export("deployed", "yes")


def of(stack: FrugalStack, kind: str) -> list[dict[str, Any]]:
    return [one for one in stack.resources() if one["type"] == kind]


def in_cloud(rehearsal: Rehearsal) -> tuple[int, int]:
    """Numbers of log groups and keys in the emulated account."""
    return rehearsal.count(f"${GROUP}::"), rehearsal.count(f"${KEY}::")


def test_a_new_stack_has_nothing_to_release(rehearsal: Rehearsal, stack: Select) -> None:
    stack(now).preview()
    stack(now).up()
    assert in_cloud(rehearsal) == (0, 1)
    stack(now).destroy()
    assert in_cloud(rehearsal) == (0, 0)


def test_two_ups_release_the_groups_and_destroy_keeps_their_key(rehearsal: Rehearsal, stack: Select) -> None:
    stack(before).up()
    stack(now).up()
    for one in of(stack(now), GROUP):
        assert one["retainOnDelete"] and one["outputs"]["tagsAll"] == {"trainstack:stack": "released"}
        assert not one["outputs"].get("kmsKeyId") and one["outputs"]["retentionInDays"] == 90
    (key,) = of(stack(now), KEY)
    assert all(name in key["outputs"]["policy"] for name in GROUPS)
    stack(now).up()
    assert of(stack(now), GROUP) == [] and in_cloud(rehearsal) == (2, 1)
    assert changes(stack(now).up()).keys() == {"same"}
    stack(now).destroy()
    assert in_cloud(rehearsal) == (2, 1)


def test_destroy_without_an_up_keeps_groups_and_key(
    rehearsal: Rehearsal, stack: Select, tmp_path: Path
) -> None:
    stack(before).up()
    (tmp_path / "Pulumi.yaml").write_text("name: rehearsed\nruntime: python\n")
    engine = EngineStack("dev", rehearsal.environment(), tmp_path)
    Session(name="dev", engine=engine, rehearsal=rehearsal).destroy(confirmed=True)
    assert engine.resources() == [] and in_cloud(rehearsal) == (2, 1)
