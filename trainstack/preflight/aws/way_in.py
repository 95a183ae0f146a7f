"""Access from this machine to the cluster: the address of its API, and the login program."""

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_CHECK = "way-in"
_HTTPS = 443
_NONE = "ResourceNotFoundException"


def api(account: Account) -> Iterator[Answer]:
    """The API can be reached from here: the same `up` creates the objects in the cluster through it.

    A private API is in a network that the first `up` creates: it cannot be reached from outside yet.
    """
    try:
        cluster = account.client("eks").describe_cluster(name=account.spec.name)["cluster"]
    except ClientError as error:
        if error.response["Error"]["Code"] != _NONE:
            raise
        yield _before_creation(account)
        return
    host = urlsplit(cluster.get("endpoint", "")).hostname
    if host and account.machine.connects(host, _HTTPS):
        yield Answer(_CHECK, State.READY, f"{host} accepts connections from here")
        return
    text = f"{host or 'the API'} does not accept connections from here"
    fix = "Join its network (docs/reference/preflight.md, A private API), or extend layout.api_access."
    yield Answer(_CHECK, State.SHORT, text, fix)


def _before_creation(account: Account) -> Answer:
    """The answer for a cluster that does not exist yet: whether its API will accept this machine."""
    allowed = [ipaddress.IPv4Network(cidr) for cidr in account.cluster.api_access]
    if not allowed:
        text = "the API is private, and its network does not exist yet: the first up could not reach it"
        fix = (
            "Add this machine's address to layout.api_access for the first up, and remove it once there is "
            "another access path (docs/reference/preflight.md, A private API)."
        )
        return Answer(_CHECK, State.SHORT, text, fix)
    try:
        mine = ipaddress.ip_address(account.machine.address())
    except (OSError, ValueError) as error:
        text = f"the public address of this machine is unknown: {error}"
        return Answer(_CHECK, State.UNKNOWN, text, "Check that it is within layout.api_access.")
    if any(mine in network for network in allowed):
        return Answer(_CHECK, State.READY, f"{mine} is within layout.api_access")
    fix = f"Add {mine}/32 to layout.api_access, or deploy from within it."
    return Answer(_CHECK, State.SHORT, f"{mine}, this machine, is not within layout.api_access", fix)


def program(account: Account) -> Iterator[Answer]:
    """The AWS CLI is installed: the kubeconfig gets a token from it (`aws eks get-token`)."""
    found = account.machine.finds("aws")
    if found:
        yield Answer("aws-cli", State.READY, found)
    else:
        fix = "Install the AWS CLI: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"
        yield Answer(
            "aws-cli",
            State.SHORT,
            "`aws` is not installed; the deployment needs it to log in to the cluster",
            fix,
        )
