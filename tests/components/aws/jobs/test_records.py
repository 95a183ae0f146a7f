"""The log groups of a stack without a cluster; the group of notebooks belongs to the account."""

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest
from pulumi.runtime import set_mocks

from components.aws.jobs.records import AwsRecords, has_notebook_logs
from tests.components.recorder import Recorder, deploy

STUDIO = "/aws/sagemaker/studio"
KEY = "arn:aws:kms:us-east-1:111122223333:key/1"


def has(names: list[str], group: Mapping[str, object]) -> bool:
    answers: Mapping[str, Callable[[Any], Mapping[str, object]]] = {
        "aws:cloudwatch/getLogGroups:getLogGroups": lambda _: {"id": "x", "logGroupNames": names, "arns": []},
        "aws:cloudwatch/getLogGroup:getLogGroup": lambda _: {"id": STUDIO, "name": STUDIO, **group},
    }
    set_mocks(Recorder(answers=answers), project="trainstack", stack="dev", preview=False)
    found: list[bool] = []
    run: Any = pulumi.runtime.test
    run(lambda: found.append(has_notebook_logs("dev", pulumi.InvokeOptions())))()
    return found[0]


@pytest.mark.parametrize(
    ("names", "group", "expected"),
    [
        ([], {}, False),
        ([f"{STUDIO}-lifecycle"], {}, False),
        ([STUDIO], {"kmsKeyId": "", "tags": {}}, False),
        ([STUDIO], {"kmsKeyId": KEY, "tags": {"trainstack:stack": "other"}}, False),
        ([STUDIO], {"kmsKeyId": "", "tags": {"trainstack:stack": "dev"}}, False),
        ([STUDIO], {"kmsKeyId": KEY, "tags": {"trainstack:stack": "dev"}}, True),
    ],
)
def test_only_a_group_that_an_earlier_version_has_made_for_the_stack_is_its_own(
    names: list[str], group: Mapping[str, object], expected: bool
) -> None:
    assert has(names, group) is expected


@pytest.mark.parametrize("release", [False, True])
def test_a_group_of_notebooks_is_released_without_the_stacks_key(release: bool) -> None:
    def program() -> Mapping[str, pulumi.Output[Any]]:
        made = AwsRecords(
            "dev-records",
            {
                "region": "us-east-1",
                "log_retention_days": 90,
                "log_groups": [],
                "release_notebook_logs": release,
            },
        )
        return {"group": made.job_log_group}

    recorder, _ = deploy(program)
    groups = {
        one.properties["name"]: one.properties for one in recorder.of_type("aws:cloudwatch/logGroup:LogGroup")
    }
    assert (STUDIO in groups) is release
    assert not groups.get(STUDIO, {}).get("kmsKeyId")
    assert groups["/aws/sagemaker/TrainingJobs"]["kmsKeyId"]
