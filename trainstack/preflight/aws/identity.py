"""The deployer's identity: its account, and its access to the cluster."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_CHECK = "identity"
_CALLER = re.compile(
    r"arn:aws[a-z-]*:(?:sts|iam)::(?P<account>\d{12}):(?P<kind>assumed-role|role|user)/(?P<path>.+)"
)


@dataclass(frozen=True)
class Principal:
    """An IAM role or user by its name, which is unique without its path; sessions lack the path."""

    account: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of account {self.account}"


def principal(arn: str) -> Principal | None:
    """The role or user behind an ARN of its own or of one of its sessions; None for a root user and others.

    A session of a role is `assumed-role/ROLE/SESSION` (botocore 1.44.5 sts/2011-06-15 AssumedRoleUser).
    """
    found = _CALLER.fullmatch(arn)
    if found is None:
        return None
    steps = found["path"].split("/")
    if found["kind"] == "assumed-role":
        return Principal(found["account"], "role", steps[0])
    return Principal(found["account"], found["kind"], steps[-1])


def caller(account: Account) -> Iterator[Answer]:
    """The credentials belong to the stack's account, and to one of its administrators.

    The creator of a cluster is not its administrator (`bootstrap_cluster_creator_admin_permissions` is off):
    without an access entry, every request to the new cluster would fail with Unauthorized.
    """
    found = account.client("sts").get_caller_identity()
    if found["Account"] != account.on.account_id:
        text = f"the credentials belong to account {found['Account']}, the stack to {account.on.account_id}"
        fix = "Log in to the stack's account, or correct on.account_id."
        yield Answer(_CHECK, State.SHORT, text, fix)
        return
    if account.deployer is not None:
        # API servers know the deployer: its tokens are signed with the credentials of the environment.
        found = account.deployer("sts", account.spec.region).get_caller_identity()
    me = principal(found["Arn"])
    if not account.on.admin_arns:
        yield Answer(_CHECK, State.READY, f"{me or found['Arn']}; there is no cluster to administer")
        return
    if me is not None and me in map(principal, account.on.admin_arns):
        yield Answer(_CHECK, State.READY, f"{me}, an administrator of the cluster")
        return
    text = f"{me or found['Arn']} is none of on.admin_arns: its requests to the cluster would be Unauthorized"
    fix = f"Deploy as one of {', '.join(account.on.admin_arns)}, or add the deployer's role or user."
    yield Answer(_CHECK, State.SHORT, text, fix)
