"""What a former life of the stack left behind under a name that the next one needs."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_CHECK = "leftovers"


def log_group(account: Account) -> Iterator[Answer]:
    """The log group of the cluster is not there, or is the stack's own, which has a key.

    Logs that come after a destroyed cluster make its group again, without one, and creating it is refused:
    ResourceAlreadyExistsException. Source: terraform-aws-modules/terraform-aws-eks issues 920 and 2763.
    """
    name = f"/aws/eks/{account.spec.name}/cluster"
    found = account.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=name)
    if any(group["logGroupName"] == name and not group.get("kmsKeyId") for group in found):
        said = f"the log group {name} is left of a former cluster, and up could not make it"
        fix = f"aws logs delete-log-group --region {account.spec.region} --log-group-name {name}"
        yield Answer(_CHECK, State.SHORT, said, fix)
    else:
        yield Answer(_CHECK, State.READY, "no log group of a former cluster stands in the way")
