"""The credentials are of the stack's account and of an administrator of its cluster."""

import pytest

from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, Cloud, account, asked
from trainstack.preflight.answers import State, exit_code
from trainstack.preflight.aws import ask
from trainstack.preflight.aws.identity import caller


def who(arn: str, number: str = ACCOUNT) -> Cloud:
    return Cloud().answers("sts", "get_caller_identity", {"Account": number, "Arn": arn, "UserId": "x"})


@pytest.mark.parametrize(
    ("arn", "admin"),
    [
        (ME, f"arn:aws:iam::{ACCOUNT}:role/platform"),
        (ME, f"arn:aws:iam::{ACCOUNT}:role/team/platform"),
        (f"arn:aws:iam::{ACCOUNT}:user/people/anna", f"arn:aws:iam::{ACCOUNT}:user/people/anna"),
        (
            f"arn:aws:sts::{ACCOUNT}:assumed-role/AWSReservedSSO_Admin_0123/anna@example.com",
            f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Admin_0123",
        ),
    ],
)
def test_an_administrator_is_known_by_the_session_of_its_role(arn: str, admin: str) -> None:
    (answer,) = asked(caller, account(who(arn), on__admin_arns=[admin]))
    assert answer.state is State.READY


@pytest.mark.parametrize(
    "arn",
    [
        f"arn:aws:sts::{ACCOUNT}:assumed-role/developer/platform",
        f"arn:aws:iam::{ACCOUNT}:user/platform",
        f"arn:aws:iam::{ACCOUNT}:root",
    ],
)
def test_a_deployer_that_is_no_administrator_gets_a_fix(arn: str) -> None:
    answers = ask(account(who(arn)))
    assert exit_code(answers) == 1
    assert "Unauthorized" in answers[0].text and "role/platform" in answers[0].fix


def test_in_another_account_nothing_else_is_asked() -> None:
    (answer,) = ask(account(who(ME.replace(ACCOUNT, "210987654321"), "210987654321")))
    assert (answer.state, answer.check) == (State.SHORT, "identity")
    assert "210987654321" in answer.text and ACCOUNT in answer.text


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidClientTokenId"])
def test_credentials_that_are_refused_are_never_a_pass(code: str) -> None:
    answers = ask(account(Cloud().refuses("sts", "get_caller_identity", code, "The token is expired")))
    assert exit_code(answers) == 2
    assert "Log in" in answers[0].fix
