"""The check that administrators and members exist as roles or users in the account."""

from collections.abc import Iterator, Mapping

from botocore.exceptions import ClientError

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account
from trainstack.preflight.aws.identity import Principal, principal

_CHECK = "principals"
_ABSENT = "NoSuchEntity"


def named(account: Account) -> Iterator[Answer]:
    """Every administrator and every member is an existing role or user, by its whole ARN.

    EKS rejects the access entry of others, ten minutes into the deployment: "The specified principalArn is
    invalid: invalid principal" (terraform-aws-modules/terraform-aws-eks issue 2969).
    """
    wanted = _wanted(account)
    wrong = [answer for path, arn in wanted.items() for answer in _asked(account, path, arn)]
    yield from wrong
    if not wrong:
        yield Answer(_CHECK, State.READY, f"{len(wanted)} roles and users exist")


def _wanted(account: Account) -> Mapping[str, str]:
    """ARNs by their path in the spec."""
    found = {f"on.admin_arns[{index}]": arn for index, arn in enumerate(account.on.admin_arns)}
    for index, team in enumerate(account.spec.teams):
        found |= {f"teams[{index}].members[{at}]": arn for at, arn in enumerate(team.members)}
    return found


def _asked(account: Account, path: str, arn: str) -> Iterator[Answer]:
    one = principal(arn)
    if one is None or one.account != account.on.account_id:
        fix = "Check it there, then --skip principals here."
        yield Answer(_CHECK, State.UNKNOWN, f"{path}: {arn} is of another account", fix)
        return
    try:
        found = _arn(account, one)
    except ClientError as error:
        if error.response["Error"]["Code"] != _ABSENT:
            raise
        fix = (
            "Correct it, or create it first; a permission set has a role only in accounts it is assigned in."
        )
        yield Answer(_CHECK, State.SHORT, f"{path}: there is no {one}", fix)
        return
    if found != arn:
        yield Answer(_CHECK, State.SHORT, f"{path}: {arn} is called {found}", f"Write {found}.")


def _arn(account: Account, one: Principal) -> str:
    """The whole ARN of a role or user, with its path. Raises ClientError."""
    iam = account.client("iam")
    if one.kind == "role":
        return str(iam.get_role(RoleName=one.name)["Role"]["Arn"])
    return str(iam.get_user(UserName=one.name)["User"]["Arn"])
