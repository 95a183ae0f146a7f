"""Access from this machine to the cluster: the address of its API, and the login program."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account
from trainstack.preflight.machine import WAY_IN

_NONE = "ResourceNotFoundException"


def api(account: Account) -> Iterator[Answer]:
    """The API can be reached from here: the same `up` creates the objects in the cluster through it.

    A private API is in a network that the first `up` creates: it cannot be reached from outside yet.
    """
    found = account.found("eks", "describe_cluster", _NONE, name=account.spec.name)
    if found is not None:
        host = urlsplit(found["cluster"].get("endpoint", "")).hostname
        fix = "Join its network (docs/reference/preflight.md, A private API), or extend layout.api_access."
        yield account.machine.reaches(host, fix)
    elif not account.cluster.api_access:
        text = "the API is private, and its network does not exist yet: the first up could not reach it"
        fix = (
            "Add this machine's address to layout.api_access (of a cluster of several: to its api_access in "
            "layout.clusters) for the first up, and remove it once there is another access path "
            "(docs/reference/preflight.md, A private API)."
        )
        yield Answer(WAY_IN, State.SHORT, text, fix)
    else:
        yield account.machine.will_reach(account.cluster.api_access)


def program(account: Account) -> Iterator[Answer]:
    """The AWS CLI is installed: the kubeconfig gets a token from it (`aws eks get-token`)."""
    fix = "Install the AWS CLI: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"
    yield account.machine.has_login_program("aws-cli", "aws", fix)
