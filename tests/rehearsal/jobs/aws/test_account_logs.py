"""Stacks of an earlier version release the account's log groups, with a real engine: no log is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from components.aws.account import current_account
from components.aws.encryption import encryption_key
from components.aws.jobs import records
from components.aws.logs import logs_may_use
from components.base import Component
from infra.engine.stack import EngineStack
from infra.jobs.aws.account_logs import GROUPS, JOB_LOGS, NOTEBOOK_LOGS
from rehearsal.client import Rehearsal
from tests.rehearsal.frugal import FrugalStack
from tests.rehearsal.runs.updates import changes, counts, refused
from trainstack.cli.operations.session import Session

Select = Callable[[Callable[[], None]], FrugalStack]
MORE = pytest.mark.more
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


NAME, SECRET = "dev-records", "hunter2 of the stack"


def provider() -> aws.Provider:
    tags = aws.ProviderDefaultTagsArgs(tags={"trainstack:stack": "dev"})
    return aws.Provider("dev-aws", region="us-east-1", default_tags=tags)


def refused_after(records_: pulumi.Resource, on_aws: aws.Provider) -> None:
    """A resource that AWS refuses, so that the program never exports."""
    bad = aws.cloudwatch.LogGroup(
        "bad",
        name="/bad",
        retention_in_days=77,
        opts=pulumi.ResourceOptions(provider=on_aws, depends_on=[records_]),
    )
    pulumi.export("deployed", bad.arn)


def earlier(on_aws: aws.Provider) -> pulumi.Resource:
    return AwsRecords(NAME, pulumi.ResourceOptions(providers=[on_aws]))


def before() -> None:
    earlier(provider())
    pulumi.export("deployed", pulumi.Output.secret(SECRET))


def before_failing() -> None:
    on_aws = provider()
    refused_after(earlier(on_aws), on_aws)


def present(on_aws: aws.Provider) -> pulumi.Resource:
    found = records.deployed_logs(NAME, pulumi.InvokeOptions(provider=on_aws))
    args: Any = {"region": "us-east-1", "log_groups": [], "earlier": found}
    return records.AwsRecords(NAME, args, pulumi.ResourceOptions(providers=[on_aws]))


def now() -> None:
    present(provider())
    pulumi.export("deployed", "yes")


def now_failing() -> None:
    on_aws = provider()
    refused_after(present(on_aws), on_aws)


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


def assert_released(stack: FrugalStack) -> None:
    """Key and tag of the stack are off both groups; their key stays for what is logged."""
    for one in of(stack, GROUP):
        assert one["retainOnDelete"] and one["outputs"]["tagsAll"] == {"trainstack:stack": "released"}
        assert not one["outputs"].get("kmsKeyId") and one["outputs"]["retentionInDays"] == 90
    assert_kept(stack)


def assert_kept(stack: FrugalStack) -> None:
    (key,) = of(stack, KEY)
    assert key["retainOnDelete"] and all(name in key["outputs"]["policy"] for name in GROUPS)


def engine_of(rehearsal: Rehearsal, folder: Path) -> EngineStack:
    (folder / "Pulumi.yaml").write_text("name: rehearsed\nruntime: python\n")
    return EngineStack("dev", rehearsal.environment(), folder)


@pytest.mark.parametrize("first", [pytest.param(before, marks=MORE), before_failing])
def test_two_ups_release_the_groups_and_destroy_keeps_their_key(
    rehearsal: Rehearsal, stack: Select, first: Callable[[], None]
) -> None:
    if first is before:
        stack(first).up()
    else:
        refused(stack(first))
        (root,) = of(stack(now), "pulumi:pulumi:Stack")
        assert not root.get("outputs") and in_cloud(rehearsal) == (2, 1)
        planned = counts(stack(now).preview().change_summary)
        assert planned["update"] >= 2 and "delete" not in planned
        # What the next one has released stays so when it fails as well.
        refused(stack(now_failing))
    stack(now).up()
    assert_released(stack(now))
    stack(now).up()
    assert of(stack(now), GROUP) == [] and in_cloud(rehearsal) == (2, 1)
    assert changes(stack(now).up()).keys() == {"same"}
    assert_kept(stack(now))
    stack(now).destroy()
    assert in_cloud(rehearsal) == (2, 1)


@pytest.mark.parametrize("first", [before, pytest.param(before_failing, marks=MORE)])
def test_destroy_without_an_up_keeps_groups_and_key(
    rehearsal: Rehearsal, stack: Select, tmp_path: Path, first: Callable[[], None]
) -> None:
    refused(stack(first)) if first is before_failing else stack(first).up()
    engine = engine_of(rehearsal, tmp_path)
    Session(name="dev", engine=engine, rehearsal=rehearsal).destroy(confirmed=True)
    assert engine.resources() == [] and in_cloud(rehearsal) == (2, 1)


@MORE
def test_an_up_after_a_destroy_that_was_interrupted_keeps_the_key_of_the_groups(
    rehearsal: Rehearsal, stack: Select, tmp_path: Path
) -> None:
    stack(before).up()
    engine = engine_of(rehearsal, tmp_path)
    assert "ciphertext" in str(engine.resources()) and SECRET not in str(engine.resources())
    groups = [one["urn"] for one in of(stack(now), GROUP)]
    assert engine.retain([*groups, of(stack(now), KEY)[0]["urn"]]).succeeded
    assert engine.delete(None, groups).succeeded
    assert of(stack(now), GROUP) == [] and in_cloud(rehearsal) == (2, 1)
    stack(now).up()
    assert_kept(stack(now))
    stack(now).destroy()
    assert in_cloud(rehearsal) == (2, 1)


@MORE
def test_a_group_that_was_deleted_by_hand_stops_no_release(rehearsal: Rehearsal, stack: Select) -> None:
    stack(before).up()
    gone = next(one["urn"] for one in of(stack(now), GROUP) if one["outputs"]["name"] == NOTEBOOK_LOGS)
    rehearsal.drift(gone, None)
    assert in_cloud(rehearsal) == (1, 1)
    stack(now).up()
    stack(now).up()
    assert_kept(stack(now))
    assert all(one["retainOnDelete"] for one in of(stack(now), GROUP))
    stack(now).destroy()
    assert in_cloud(rehearsal) == (1, 1)
