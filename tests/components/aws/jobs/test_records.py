"""The key of records, and the release of the account's log groups by stacks of an earlier version."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.aws.jobs.records import AwsRecords
from infra.jobs.aws.account_logs import EarlierLogs, earlier_logs, to_retain
from tests.components.recorder import Recorder, deploy

JOBS, STUDIO = "/aws/sagemaker/TrainingJobs", "/aws/sagemaker/studio"
KEY, FOREIGN = (f"arn:aws:kms:us-east-1:111122223333:key/{one}" for one in ("own", "organization"))
STACK = "trainstack:stack"


def row(called: str, kind: str, parent: str = "AwsRecords", **outputs: object) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::trainstack::trainstack:index:{parent}$aws:{kind}::dev-records-{called}"
    return {"urn": urn, "outputs": outputs}


def group(called: str, name: str, **outputs: Any) -> dict[str, Any]:
    return row(called, "cloudwatch/logGroup:LogGroup", name=name, retentionInDays=90, **outputs)


OWN = row("key", "kms/key:Key", arn=KEY, tags={})
STATE = [group("jobs", JOBS, kmsKeyId=KEY), group("notebooks", STUDIO, kmsKeyId=KEY), OWN]
FREE = {STACK: "released"}
KEPT = row("key", "kms/key:Key", arn=KEY, tags={"trainstack:keeps": "logs-of-the-account"})


@pytest.mark.parametrize(
    ("rows", "groups", "key"),
    [
        ([], set(), ""),
        ([OWN], set(), ""),
        (
            [row("x", "cloudwatch/logGroup:LogGroup", parent="AwsFunction", name="/aws/lambda/x"), OWN],
            set(),
            "",
        ),
        (STATE, {"dev-records-jobs", "dev-records-notebooks"}, KEY),
        # An organization's key in place of the stack's: `refresh` has adopted it.
        ([group("jobs", JOBS, kmsKeyId=FOREIGN), OWN], {"dev-records-jobs"}, KEY),
        # Interrupted between the two.
        (
            [group("jobs", JOBS, tags=FREE), STATE[1], KEPT],
            {"dev-records-jobs", "dev-records-notebooks"},
            KEY,
        ),
        ([group("jobs", JOBS, tags=FREE), group("notebooks", STUDIO, tags=FREE), KEPT], set(), KEY),
        ([KEPT], set(), KEY),
    ],
)
def test_groups_are_released_by_the_state_and_their_key_stays(
    rows: list[dict[str, Any]], groups: set[str], key: str
) -> None:
    found = earlier_logs(rows)
    assert (set(found.groups), found.key_arn) == (groups, key)


def test_destroy_retains_groups_of_the_account_with_their_key_and_nothing_else() -> None:
    other = row("x", "cloudwatch/logGroup:LogGroup", parent="AwsFunction", name=JOBS)
    assert to_retain([*STATE, other]) == [one["urn"] for one in STATE]
    assert to_retain([{**one, "retainOnDelete": True} for one in STATE]) == []
    assert to_retain([OWN, other]) == []


def deployed(earlier: EarlierLogs) -> Recorder:
    def program() -> Mapping[str, pulumi.Output[Any]]:
        args: Any = {"region": "us-east-1", "log_groups": ["/aws/lambda/x"], "earlier": earlier}
        return {"key": AwsRecords("dev-records", args).kms_key_arn}

    return deploy(program)[0]


def test_a_new_stack_has_no_group_of_the_account() -> None:
    recorder = deployed(EarlierLogs())
    assert recorder.of_type("aws:cloudwatch/logGroup:LogGroup") == []
    policy = str(recorder.one("aws:kms/key:Key").properties["policy"])
    assert "/aws/lambda/x" in policy and "sagemaker" not in policy


@pytest.mark.parametrize(("key", "left"), [(KEY, None), (FOREIGN, FOREIGN), ("", None)])
def test_a_release_takes_the_stacks_key_and_tag_and_changes_nothing_else(key: str, left: str | None) -> None:
    recorder = deployed(earlier_logs([group("jobs", JOBS, kmsKeyId=key), OWN]))
    released = recorder.one("aws:cloudwatch/logGroup:LogGroup")
    assert released.name == "dev-records-jobs" and released.properties["name"] == JOBS
    assert (released.properties.get("kmsKeyId") or None) == left
    assert released.properties["retentionInDays"] == 90 and released.properties["tags"] == FREE
    kept = recorder.one("aws:kms/key:Key").properties
    assert kept["tags"] == KEPT["outputs"]["tags"]
    assert f"log-group:{JOBS}" in json.dumps(kept["policy"]), "logs of before are read with the key"
