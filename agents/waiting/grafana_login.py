"""Makes the login of Grafana's one user, once; runs in a pod of its own.

The password is made here and lies in one Secret, which Grafana reads: it passes neither through the state of
Pulumi nor through a log. A login that is there stays as it is. Exit codes: 0 it is there, 1 it is not; the
reason is the container's termination message. Standard library only.
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
# 32 random bytes: longer than any that people would choose.
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
    """Create the Secret unless it exists; (it is there, what was said last)."""
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
            return True, f"the login {namespace}/{name} is made"
        if status == 409:
            return True, f"the login {namespace}/{name} exists"
        patience_s = min(limit_s, FORBIDDEN_S) if status in (401, 403) else limit_s
        if time.monotonic() > began + patience_s:
            return False, f"the login {namespace}/{name} cannot be made: {state}"
        say(state)
        time.sleep(POLL_S)


def main() -> int:
    """Make the login that the arguments name."""
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
