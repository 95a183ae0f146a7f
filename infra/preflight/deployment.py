"""What a deployment asks of the real account before it begins."""

from infra import aws_login
from infra.errors import Problem, UserError
from infra.preflight.answers import State
from infra.preflight.aws import IDENTITY, ask
from infra.preflight.aws.account import Account
from infra.stackspec import StackSpec
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout

# What would end an `up` that has begun: late, or not at all. Who may not ask may deploy all the same.
_BEFORE_UP = (
    "kubernetes-version",
    "principals",
    "leftovers",
    "certificate",
    "client-secret",
    "way-in",
    "aws-cli",
)


def account_of(spec: StackSpec) -> Account:
    """The account that a stack is meant for, with the credentials of the environment. Raises UserError."""
    if not isinstance(spec.layout, MediumLayout) or not isinstance(spec.on, AwsSpec):
        raise UserError([Problem("trainstack:cloud", spec.cloud, "no checks are known for it", "Use aws.")])
    try:
        return Account(spec, spec.layout, spec.on, aws_login.clients())
    except aws_login.LoggedOutError as error:
        raise UserError([Problem("AWS_PROFILE", None, str(error), "Name a profile that exists.")]) from None


def refuse_what_cannot_finish(spec: StackSpec) -> None:
    """Raise UserError where `up` would go into another account, or could not make or reach its cluster."""
    wrong = [
        answer
        for answer in ask(account_of(spec), _BEFORE_UP)
        if answer.state is State.SHORT or (answer.state is State.UNKNOWN and answer.check == IDENTITY)
    ]
    if wrong:
        raise UserError([Problem(answer.check, None, answer.said, answer.fix) for answer in wrong])
