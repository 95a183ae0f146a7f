"""Names that a former life of the stack has left taken."""

from typing import Any

import pytest

from tests.trainstack.preflight.aws.asking import ACCOUNT, STACK, Cloud, account, asked, states
from trainstack.preflight.answers import State
from trainstack.preflight.aws.places import leftovers

NAME = f"/aws/eks/{STACK}/cluster"
KEY = {"kmsKeyId": f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1"}


def groups(*found: dict[str, Any]) -> Cloud:
    return Cloud().answers("logs", "describe_log_groups", {"logGroups": list(found)}, logGroupNamePrefix=NAME)


@pytest.mark.parametrize("found", [[], [{"logGroupName": NAME, **KEY}], [{"logGroupName": f"{NAME}-2"}]])
def test_nothing_stands_in_the_way(found: list[dict[str, Any]]) -> None:
    assert states(asked(leftovers, account(groups(*found)))) == [State.READY]


def test_a_log_group_that_the_cluster_made_again_is_named_with_the_command_that_deletes_it() -> None:
    (answer,) = asked(leftovers, account(groups({"logGroupName": NAME})))
    assert answer.state is State.SHORT
    assert answer.fix == f"aws logs delete-log-group --region us-east-1 --log-group-name {NAME}"


def test_it_is_unknown_without_access() -> None:
    cloud = Cloud().refuses("logs", "describe_log_groups", "AccessDeniedException", "no")
    assert states(asked(leftovers, account(cloud))) == [State.UNKNOWN]
