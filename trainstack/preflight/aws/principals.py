"""The check that administrators and members exist as roles or users in the account."""

from collections.abc import Iterator, Mapping

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account
from trainstack.preflight.aws.identity import principal

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
    kind = one.kind.title()
    operation = {"role": "get_role", "user": "get_user"}[one.kind]
    asked = account.found("iam", operation, _ABSENT, **{f"{kind}Name": one.name})
    if asked is None:
        fix = (
            "Correct it, or create it first; a permission set has a role only in accounts it is assigned in."
        )
        yield Answer(_CHECK, State.SHORT, f"{path}: there is no {one}", fix)
    elif (found := asked[kind]["Arn"]) != arn:
        yield Answer(_CHECK, State.SHORT, f"{path}: {arn} is called {found}", f"Write {found}.")
