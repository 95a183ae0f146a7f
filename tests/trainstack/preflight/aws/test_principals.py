"""Administrators and members of teams exist, before a cluster is made for them."""

import datetime
from typing import Any

from tests.trainstack.preflight.aws.asking import ACCOUNT, Cloud, account, asked, states
from trainstack.preflight.answers import State
from trainstack.preflight.aws.principals import named

PLATFORM = f"arn:aws:iam::{ACCOUNT}:role/platform"
SETS = f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso.amazonaws.com"
RESEARCH = f"{SETS}/AWSReservedSSO_Research_0123456789abcdef"
VISION = f"{SETS}/AWSReservedSSO_Vision_0123456789abcdef"
MADE = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def role(cloud: Cloud, arn: str, called: str = "") -> Cloud:
    """The account has a role of the name in this ARN; `called`: its whole ARN."""
    name = arn.rpartition("/")[2]
    row: dict[str, Any] = {
        "Path": "/",
        "RoleName": name,
        "RoleId": "AROA0123456789ABCDEF",
        "CreateDate": MADE,
    }
    return cloud.answers("iam", "get_role", {"Role": {**row, "Arn": called or arn}}, RoleName=name)


def test_everybody_exists() -> None:
    cloud = role(role(role(Cloud(), PLATFORM), RESEARCH), VISION)
    (answer,) = asked(named, account(cloud))
    assert answer.state is State.READY and cloud.is_exhausted()


def test_who_does_not_exist_is_named_with_the_others_asked() -> None:
    cloud = role(role(Cloud(), PLATFORM).refuses("iam", "get_role", "NoSuchEntity"), VISION)
    (answer,) = asked(named, account(cloud))
    assert answer.state is State.SHORT and cloud.is_exhausted()
    assert answer.text.startswith("teams[0].members[0]: ")


def test_a_role_without_its_path_gets_the_whole_arn() -> None:
    whole = f"{SETS}/eu-west-1/AWSReservedSSO_Vision_0123456789abcdef"
    cloud = role(role(role(Cloud(), PLATFORM), RESEARCH), VISION, whole)
    (answer,) = asked(named, account(cloud))
    assert answer.state is State.SHORT
    assert answer.text.startswith("teams[1].members[0]: ") and answer.fix == f"Write {whole}."


def test_users_are_asked_as_users_and_other_accounts_not_at_all() -> None:
    user = {
        "Path": "/people/",
        "UserName": "ada",
        "UserId": "AIDA0123456789ABCDEF",
        "Arn": f"arn:aws:iam::{ACCOUNT}:user/people/ada",
        "CreateDate": MADE,
    }
    cloud = role(Cloud(), PLATFORM).answers("iam", "get_user", {"User": user}, UserName="ada")
    teams = [{"name": "Research", "gpus": {}, "members": [user["Arn"], "arn:aws:iam::210987654321:role/far"]}]
    (answer,) = asked(named, account(cloud, teams=teams))
    assert answer.state is State.UNKNOWN and "teams[0].members[1]" in answer.text
    assert cloud.is_exhausted()


def test_who_may_not_ask_knows_nothing() -> None:
    cloud = Cloud().refuses("iam", "get_role", "AccessDenied", "not authorized")
    assert states(asked(named, account(cloud))) == [State.UNKNOWN]
