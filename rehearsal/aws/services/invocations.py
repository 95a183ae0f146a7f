"""Invocations of functions by an engine: `aws:lambda/invocation:Invocation` calls Lambda and waits.

Source: hashicorp/terraform-provider-aws internal/service/lambda/invocation.go (buildInput: the action and the
input before, under `terraform_key`, where the scope is CRUD; invoke: a FunctionError fails the operation;
resourceInvocationDelete: no call where the scope is CREATE_ONLY). The services of a home run while an
engine works; without them, as without a daemon, no function is called.
"""

import http.client
import json
from collections.abc import Mapping
from urllib.parse import quote

from rehearsal import service_ports
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, RefusalError
from rehearsal.isolation import OPERATOR_KEY

_LONGEST_S = 930.0  # the longest that a function may run, and its start


def _called(site: Site, action: str, old: Properties | None, new: Properties) -> Properties:
    """The result of a call, as output of the resource. Raises RefusalError."""
    home = site.state.path.parent
    always = new.get("lifecycleScope") == "CRUD"
    if not (home / service_ports.FILES["aws"]).exists() or (action == "delete" and not always):
        return {}
    payload = json.loads(str(new["input"]))
    if always:
        before = None if old is None else json.loads(str(old["input"]))
        payload[str(new.get("terraformKey") or "tf")] = {"action": action, "prev_input": before}
    return {"result": _invoke(site, str(new["functionName"]), json.dumps(payload))}


def _invoke(site: Site, name: str, payload: str) -> str:
    signed = f"AWS4-HMAC-SHA256 Credential={OPERATOR_KEY}/20261126/{site.region}/lambda/aws4_request"
    place = http.client.HTTPConnection(
        "127.0.0.1", service_ports.port(site.state.path.parent), timeout=_LONGEST_S
    )
    try:
        path = f"/2015-03-31/functions/{quote(name, safe='')}/invocations"
        place.request("POST", path, payload, {"Authorization": signed, "Content-Type": "application/json"})
        answer = place.getresponse()
        result = answer.read().decode()
    finally:
        place.close()
    if answer.status != http.client.OK or answer.headers.get("X-Amz-Function-Error"):
        code = answer.headers.get("x-amzn-ErrorType") or "FunctionError"
        raise RefusalError(code, f"invoking Lambda Function ({name}): {result}")
    return result


HOOKS: Mapping[str, Hooks[Site]] = {"lambda/invocation:Invocation": Hooks(calls=_called)}
