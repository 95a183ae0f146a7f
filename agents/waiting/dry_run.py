"""Wait until the API server responds to a dry run of a new object; runs in a pod of its own.

`pulumi up` waits for the Job that runs this file, and creates the object only then: the webhooks may not be
reachable yet, and the provider would not retry (docs/adr/0012). Nothing is stored. Standard library only.
Exit codes: 0 responded, whether the object is accepted or rejected; 1 no response in time, or access denied;
the reason is the container's termination message.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agents.shared.api_server import FORBIDDEN_S, ApiServer, Object, finish, say

POLL_S = 1.0
# A managed cluster has several API servers behind one address, each with a cache of webhooks.
IN_A_ROW = 3


def responded(status: int, response: Object) -> bool:
    """Return whether the object was accepted or rejected; False while a webhook was unreachable.

    An object that exists is rejected when it is stored, so after all webhooks (k8s.io/apiserver
    pkg/registry/generic/registry/store.go, `Create`). A webhook's rejection has any status, 403 by default
    (pkg/admission/plugin/webhook/errors/statuserror.go).
    """
    refused_by_webhook = "denied the request" in str(response.get("message"))
    return (
        status < 300
        or status in (400, 422)
        or response.get("reason") == "AlreadyExists"
        or refused_by_webhook
    )


def wait(
    server: ApiServer, path: str, body: Object, limit_s: float, log: Callable[[str], None]
) -> tuple[bool, str]:
    """Retry until there were `IN_A_ROW` responses; returns whether, and the last state."""
    began = allowed = time.monotonic()
    times, logged = 0, ""
    while True:
        try:
            status, response = server.ask("POST", f"{path}?dryRun=All", body)
            state = f"{status} {response.get('message', '')}".strip()
            times = times + 1 if responded(status, response) else 0
        except OSError as error:
            # An API server during an upgrade is unavailable for a while.
            status, state, times = 0, f"the API server cannot be reached: {error}", 0
        if times == IN_A_ROW:
            return True, state
        now = time.monotonic()
        if times or status not in (401, 403):
            allowed = now
        elif now >= allowed + FORBIDDEN_S:
            return False, f"the account of this pod is denied access: {state}"
        if now > began + limit_s:
            return False, f"after {limit_s:.0f} s still: {state}"
        if state != logged:
            logged = state
            log(f"{now - began:5.0f} s: {state}")
        time.sleep(POLL_S)


def main() -> int:
    """Wait for the object of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", required=True, help="path of the kind, such as /apis/GROUP/V/PLURAL")
    parser.add_argument("--object", type=json.loads, required=True, help="as JSON")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--message", type=Path, required=True)
    asked = parser.parse_args()
    passed, reason = wait(ApiServer(asked.account), asked.path, asked.object, asked.seconds, say)
    verdict = "answered" if passed else "not answered"
    name = f"{asked.object['kind']} {asked.object['metadata']['name']}"
    return finish(f"a dry run of {name} was {verdict}: {reason}", asked.message, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
