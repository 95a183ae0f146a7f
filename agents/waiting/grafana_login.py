"""Create the login of Grafana's one user, once; runs in a pod of its own.

The password is generated here and is in one Secret, which Grafana reads: it is neither in the state of Pulumi
nor in a log. An existing login stays as it is. Exit codes: 0 it exists, 1 it does not; the reason is the
container's termination message. Standard library only.
"""

import argparse
import base64
import secrets
import sys
import time
from pathlib import Path

from agents.shared.api_server import FORBIDDEN_S, ApiServer, Object, finish, say

USER = "admin"
POLL_S = 1.0
# 32 random bytes.
_BYTES = 32


def body(name: str, namespace: str) -> Object:
    """A Secret with a new password."""
    login = {"username": USER, "password": secrets.token_urlsafe(_BYTES)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in login.items()},
    }


def make(server: ApiServer, name: str, namespace: str, limit_s: float) -> tuple[bool, str]:
    """Create the Secret unless it exists; returns whether it does, and the last state."""
    began = time.monotonic()
    while True:
        try:
            status, said = server.ask(
                "POST", f"/api/v1/namespaces/{namespace}/secrets", body(name, namespace)
            )
            state = f"{status} {said.get('message', '')}".strip()
        except OSError as error:
            status, state = 0, f"the API server cannot be reached: {error}"
        if status == 201:
            return True, f"the login {namespace}/{name} is created"
        if status == 409:
            return True, f"the login {namespace}/{name} exists"
        patience_s = min(limit_s, FORBIDDEN_S) if status in (401, 403) else limit_s
        if time.monotonic() > began + patience_s:
            return False, f"the login {namespace}/{name} cannot be created: {state}"
        say(state)
        time.sleep(POLL_S)


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
