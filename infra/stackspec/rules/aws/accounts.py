"""Rules of the account of a stack, the role that deploys it, and ARNs that belong to it."""

from collections.abc import Iterator

from infra.errors import Problem
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.stack import StackSpec

_OF_AWS = "aws"


def deploying_role(_: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """The role that deploys is in the account, and no administrator: API servers know its caller."""
    if cloud.assume_role is None:
        return
    arn, path = cloud.assume_role.role_arn, "on.assume_role.role_arn"
    yield from _in_account(path, arn, cloud)
    if arn in cloud.admin_arns:
        rule = "API servers know the deployer that assumes the role, not the role"
        fix = "Name the deployer itself, in its own account."
        at = f"on.admin_arns[{cloud.admin_arns.index(arn)}]"
        yield Problem(at, arn, rule, fix, path, code="administrator-is-assumed-role")


def boundary(_: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """The permissions boundary of roles is of AWS or of their own account, as IAM demands."""
    if cloud.permissions_boundary is not None:
        yield from _in_account("on.permissions_boundary", cloud.permissions_boundary, cloud)


def _in_account(path: str, arn: str, cloud: AwsSpec) -> Iterator[Problem]:
    account = arn.split(":")[4]
    if account not in (_OF_AWS, cloud.account_id):
        rule, fix = (
            f"is in account {account}, not in {cloud.account_id}",
            f"Name one in account {cloud.account_id}.",
        )
        yield Problem(path, arn, rule, fix, "on.account_id", code="arn-in-other-account")


RULES = (deploying_role, boundary)
