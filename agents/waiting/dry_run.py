"""Ends once the API server answers a dry run of a new object; runs in a pod of its own.

`pulumi up` waits for the Job that runs this file, and creates the object only then: the webhooks that have to
be asked may not be reachable yet, and the provider would not try again (docs/adr/0012). Nothing is stored.
Standard library only. Exit codes: 0 answered, whether the object is accepted or refused; 1 not answered in
time, or not allowed to ask; the reason is the container's termination message.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agents.shared.api_server import FORBIDDEN_S, ApiServer, Object, finish, say

POLL_S = 1.0
# A managed cluster has several API servers behind one address, and each learns of a webhook by itself.
IN_A_ROW = 3


def answered(status: int, said: Object) -> bool:
    """Whether it was said what becomes of the object; False while a webhook could not be asked, or denied.

    An object that exists is refused when it is stored, so after all webhooks (k8s.io/apiserver
    pkg/registry/generic/registry/store.go, `Create`). A webhook's refusal has any status, 403 by default
    (pkg/admission/plugin/webhook/errors/statuserror.go).
    """
    refused_by_webhook = "denied the request" in str(said.get("message"))
    return status < 300 or status in (400, 422) or said.get("reason") == "AlreadyExists" or refused_by_webhook


def wait(
    server: ApiServer, path: str, body: Object, limit_s: float, tell: Callable[[str], None]
) -> tuple[bool, str]:
    """Ask until it was answered `IN_A_ROW` times; (answered, what was said last)."""
    began = allowed = time.monotonic()
    times, told = 0, ""
    while True:
        try:
            status, said = server.ask("POST", f"{path}?dryRun=All", body)
            state = f"{status} {said.get('message', '')}".strip()
            times = times + 1 if answered(status, said) else 0
        except OSError as error:
            # An API server that is being upgraded comes back.
            status, state, times = 0, f"the API server cannot be reached: {error}", 0
        if times == IN_A_ROW:
            return True, state
        now = time.monotonic()
        if times or status not in (401, 403):
            allowed = now
        elif now >= allowed + FORBIDDEN_S:
            return False, f"the account of this pod may not ask: {state}"
        if now > began + limit_s:
            return False, f"after {limit_s:.0f} s still: {state}"
        if state != told:
            told = state
            tell(f"{now - began:5.0f} s: {state}")
        time.sleep(POLL_S)


def main() -> int:
    """Ask about one object, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", required=True, help="of the kind's objects, such as /apis/GROUP/V/PLURAL")
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
