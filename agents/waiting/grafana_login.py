"""Create the login of Grafana's one user, once; runs in a pod of its own.

The password is generated here and is in one Secret, which Grafana reads: it is neither in the state of Pulumi
nor in a log. An existing login stays as it is. Exit codes: 0 it exists, 1 it does not; the reason is the
container's termination message. Standard library only.
"""

import argparse
import secrets
import sys
from pathlib import Path

from agents.shared import new_secret
from agents.shared.api_server import ApiServer, Object, finish

USER = "admin"
# 32 random bytes.
_BYTES = 32


def body(name: str, namespace: str) -> Object:
    """A Secret with a new password."""
    login = {"username": USER, "password": secrets.token_urlsafe(_BYTES)}
    return new_secret.body(name, namespace, {key: text.encode() for key, text in login.items()})


def make(server: ApiServer, name: str, namespace: str, limit_s: float) -> tuple[bool, str]:
    """Create the Secret unless it exists; returns whether it does, and the last state."""
    return new_secret.create(server, body(name, namespace), limit_s)


def main() -> int:
    """Create the login of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="of the Secret")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--message", type=Path, required=True)
    given = parser.parse_args()
    made, text = make(ApiServer(given.account), given.name, given.namespace, given.seconds)
    return finish(text, given.message, passed=made)


if __name__ == "__main__":
    sys.exit(main())
