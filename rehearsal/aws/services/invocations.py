"""Functions of Lambda that an engine calls and waits for; associations and documents of Systems Manager.

Source: hashicorp/terraform-provider-aws internal/service/lambda/invocation.go (buildInput: the action and the
input before, under `terraform_key`, where the scope is CRUD; invoke: a FunctionError fails the operation;
resourceInvocationDelete: no call where the scope is CREATE_ONLY), internal/service/ssm/association.go
(waitAssociationCreated with wait_for_success_timeout_seconds) and document.go (its update, but
for permissions and tags, makes a version that becomes the default). The services of a home run while an
engine works; without them, as without a daemon, no function is called.
"""

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rehearsal import service_ports
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.isolation import OPERATOR_KEY

_LONGEST_S = 930.0  # the longest that a function may run, and its start
_VERSIONS = ("latestVersion", "defaultVersion", "documentVersion")
_BESIDES = ("permissions", "tags")


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


def _associated(site: Site, action: str, _: Properties | None, new: Properties) -> Properties:
    home = site.state.path.parent
    if action == "delete" or not (home / service_ports.FILES["aws"]).exists():
        return {}
    if not new.get("waitForSuccessTimeoutSeconds"):
        return {}
    targets = [{"Key": one["key"], "Values": one["values"]} for one in new.get("targets") or ()]
    asked = {"DocumentName": new.get("name"), "Targets": targets, "Parameters": new.get("parameters") or {}}
    sent = _ask(site, "SendCommand", asked)
    found = _ask(site, "ListCommandInvocations", {"CommandId": sent["Command"]["CommandId"]})
    runs = found["CommandInvocations"]
    if not runs:
        raise RefusalError("TimedOut", "unexpected state 'Pending', wanted target 'Success': no instance", "")
    for one in runs:
        if one["Status"] != "Success":
            output = "".join(str(plugin["Output"]) for plugin in one["CommandPlugins"]).strip()
            raise RefusalError("Failed", f"unexpected state 'Failed', wanted target 'Success': {output}", "")
    return {}


def _ask(site: Site, operation: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
    signed = f"AWS4-HMAC-SHA256 Credential={OPERATOR_KEY}/20261129/{site.region}/ssm/aws4_request"
    place = http.client.HTTPConnection(
        "127.0.0.1", service_ports.port(site.state.path.parent), timeout=_LONGEST_S
    )
    headers = {
        "Authorization": signed,
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": f"AmazonSSM.{operation}",
    }
    try:
        place.request("POST", "/", json.dumps(content), headers)
        answer = place.getresponse()
        found: dict[str, Any] = json.loads(answer.read() or b"{}")
    finally:
        place.close()
    if answer.status != http.client.OK:
        raise RefusalError(str(found.get("__type")), str(found.get("message")), "")
    return found


def _next_version(_: Site, document: Record, inputs: Properties) -> Properties:
    was, now = ({k: v for k, v in x.items() if k not in _BESIDES} for x in (document.inputs, inputs))
    if was == now:
        return {}
    newest = str(int(document.outputs.get("latestVersion", 1)) + 1)
    return dict.fromkeys(_VERSIONS, newest)


HOOKS: Mapping[str, Hooks[Site]] = {
    "lambda/invocation:Invocation": Hooks(calls=_called),
    "ssm/association:Association": Hooks(calls=_associated),
    "ssm/document:Document": Hooks(updated=_next_version, volatile=_VERSIONS),
}
