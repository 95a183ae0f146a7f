"""The check of resources that an earlier deployment left under a name that the stack needs."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer
from trainstack.preflight.aws.account import Account


def log_group(account: Account) -> Iterator[Answer]:
    """The log group of the cluster does not exist, or has a key and so belongs to the stack.

    Late logs of a destroyed cluster create its group again, without a key, and `up` fails with
    ResourceAlreadyExistsException. Source: terraform-aws-modules/terraform-aws-eks issues 920 and 2763.
    """
    name = f"/aws/eks/{account.spec.name}/cluster"
    yield account.keyless_log_group("leftovers", name, "an earlier cluster")
