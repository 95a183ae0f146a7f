"""Names that a former life of the stack has left taken."""

from typing import Any

import pytest

from tests.trainstack.preflight.aws.asking import ACCOUNT, STACK, Cloud, account, asked, states
from trainstack.preflight.answers import State
from trainstack.preflight.aws.places import leftovers

NAME = f"/aws/eks/{STACK}/cluster"
ARN = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:{NAME}"
KEY = {"kmsKeyId": f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1"}


def groups(*found: dict[str, Any], tags: dict[str, str] | None = None) -> Cloud:
    rows = [{"arn": f"{ARN}:*", **one} for one in found]
    cloud = Cloud().answers("logs", "describe_log_groups", {"logGroups": rows}, logGroupNamePrefix=NAME)
    if tags is not None:
        cloud.answers("logs", "list_tags_for_resource", {"tags": tags}, resourceArn=ARN)
    return cloud


@pytest.mark.parametrize("found", [[], [{"logGroupName": f"{NAME}-2"}]])
def test_nothing_stands_in_the_way(found: list[dict[str, Any]]) -> None:
    assert states(asked(leftovers, account(groups(*found)))) == [State.READY]


def test_a_log_group_with_the_tag_of_the_stack_is_its_own() -> None:
    cloud = groups({"logGroupName": NAME, **KEY}, tags={"trainstack:stack": STACK})
    assert states(asked(leftovers, account(cloud))) == [State.READY]


@pytest.mark.parametrize("tags", [{}, {"trainstack:stack": "other-aws"}])
def test_a_log_group_under_a_key_of_others_is_short_and_not_deleted(tags: dict[str, str]) -> None:
    (answer,) = asked(leftovers, account(groups({"logGroupName": NAME, **KEY}, tags=tags)))
    assert answer.state is State.SHORT and "delete-log-group" not in answer.fix
    assert all(owner in answer.text for owner in tags.values())


def test_a_log_group_that_the_cluster_made_again_is_named_with_the_command_that_deletes_it() -> None:
    (answer,) = asked(leftovers, account(groups({"logGroupName": NAME}, tags={})))
    assert answer.state is State.SHORT
    assert answer.fix == f"aws logs delete-log-group --region us-east-1 --log-group-name {NAME}"


def test_it_is_unknown_without_access() -> None:
    cloud = Cloud().refuses("logs", "describe_log_groups", "AccessDeniedException", "no")
    assert states(asked(leftovers, account(cloud))) == [State.UNKNOWN]
