"""Create a Secret once: one that exists stays as it is. Standard library only."""

import base64
import time
from collections.abc import Mapping

from agents.shared.api_server import FORBIDDEN_S, ApiServer, Object, say

POLL_S = 1.0


def body(name: str, namespace: str, data: Mapping[str, bytes]) -> Object:
    """A Secret with these values by key."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def create(server: ApiServer, secret: Object, limit_s: float) -> tuple[bool, str]:
    """Create the Secret unless it exists; returns whether it does, and the last state."""
    name, namespace = secret["metadata"]["name"], secret["metadata"]["namespace"]
    began = time.monotonic()
    while True:
        try:
            status, said = server.ask("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
            state = f"{status} {said.get('message', '')}".strip()
        except OSError as error:
            status, state = 0, f"the API server cannot be reached: {error}"
        if status == 201:
            return True, f"the secret {namespace}/{name} is created"
        if status == 409:
            return True, f"the secret {namespace}/{name} exists"
        patience_s = min(limit_s, FORBIDDEN_S) if status in (401, 403) else limit_s
        if time.monotonic() > began + patience_s:
            return False, f"the secret {namespace}/{name} cannot be created: {state}"
        say(state)
        time.sleep(POLL_S)
