"""The check of resources that an earlier deployment left under a name that the stack needs."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_CHECK = "leftovers"


def log_group(account: Account) -> Iterator[Answer]:
    """The log group of the cluster does not exist, or has a key and so belongs to the stack.

    Late logs of a destroyed cluster create its group again, without a key, and `up` fails with
    ResourceAlreadyExistsException. Source: terraform-aws-modules/terraform-aws-eks issues 920 and 2763.
    """
    name = f"/aws/eks/{account.spec.name}/cluster"
    found = account.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=name)
    if any(group["logGroupName"] == name and not group.get("kmsKeyId") for group in found):
        text = f"the log group {name} of an earlier cluster exists, so up could not create it"
        fix = f"aws logs delete-log-group --region {account.spec.region} --log-group-name {name}"
        yield Answer(_CHECK, State.SHORT, text, fix)
    else:
        yield Answer(_CHECK, State.READY, "no log group of an earlier cluster exists")
