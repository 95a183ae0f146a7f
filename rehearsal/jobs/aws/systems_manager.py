"""Systems Manager for boto3: SendCommand to login nodes of AWS PCS, and ListCommandInvocations.

Source: botocore 1.44.5 ssm/2014-11-06. A command runs at once, in the real Slurm that stands for the cluster
(`rehearsal.slurm.pcs`); a login node is a running instance as soon as its group exists.
"""

import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from infra.engine.golang import SetupError
from rehearsal.aws.desired_states import state_of
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import JsonService, Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.dataplane.aws.identity import Identities
from rehearsal.dataplane.aws.server import CREDENTIALS_PATH
from rehearsal.service_ports import MLFLOW
from rehearsal.slurm.pcs import PcsClusters

_SHELL: Final = "AWS-RunShellScript"
_GROUP_TAG: Final = "aws:pcs:compute-node-group-id"
_DOCUMENT, _PROFILE = "aws:ssm/document:Document", "aws:iam/instanceProfile:InstanceProfile"
_LOGIN_TAG: Final = ("trainstack:node", "login")
_OUTPUT: Final = 24_000
"""Characters of an output (CommandPlugin.Output: 2,500 in the real service's console)."""


class SystemsManager(JsonService):
    """Runs scripts on login nodes."""

    target = "AmazonSSM"

    def __init__(self, state: State, clusters: PcsClusters, home: Path) -> None:
        self._state, self._clusters, self._home = state, clusters, home
        self._invocations: dict[str, list[dict[str, Any]]] = {}
        self._identities: Identities | None = None
        self._url = ""

    def open(self, identities: Identities, url: str) -> None:
        """Connect to the services of the home."""
        self._identities, self._url = identities, url

    def operations(self) -> Mapping[str, Operation]:
        """See `JsonService`."""
        return {"SendCommand": self._send, "ListCommandInvocations": self._list}

    def _send(self, request: Request, asked: dict[str, Any]) -> Mapping[str, Any]:
        name = str(asked.get("DocumentName"))
        arn = f"arn:aws:ssm:{request.region}::document/{name}"
        authorise(
            self._state, request.caller, [AccessCheck("ssm:SendCommand", arn, context_of(request.region))]
        )
        nodes = self._targets(asked.get("Targets") or ())
        script = self._script(name, asked.get("Parameters") or {})
        command = str(uuid.uuid4())
        self._invocations[command] = [self._run(command, one, script, request) for one in nodes]
        return {"Command": {"CommandId": command, "DocumentName": name, "Status": "Success"}}

    def _list(self, _: Request, asked: dict[str, Any]) -> Mapping[str, Any]:
        return {"CommandInvocations": self._invocations.get(str(asked.get("CommandId")), [])}

    def _script(self, name: str, parameters: Mapping[str, Any]) -> str:
        if name == _SHELL:
            return "\n".join(str(line) for line in parameters.get("commands") or ()) + "\n"
        for one in self._state.find(type=_DOCUMENT):
            if one.outputs.get("name") == name:
                steps = json.loads(str(one.inputs.get("content"))).get("mainSteps") or ()
                lines = [line for step in steps for line in step["inputs"]["runCommand"]]
                return "\n".join(lines) + "\n"
        raise ServiceError("InvalidDocument", f"Document with name {name} does not exist.")

    def _targets(self, wanted: Any) -> list[Record]:
        """Groups with all tags; the instances of others have no jobs of Systems Manager here."""
        found = [one for one in self._clusters.groups() if _login(one)]
        for one in wanted:
            key = str(one.get("Key")).removeprefix("tag:")
            values = [str(value) for value in one.get("Values") or ()]
            found = [group for group in found if _tags(group).get(key) in values]
        return found

    def _run(self, command: str, group: Record, script: str, request: Request) -> dict[str, Any]:
        try:
            code, output = self._clusters.run(group, script, self._rights(group, request))
        except SetupError as error:
            raise ServiceError(
                "InvalidInstanceId",
                f"this rehearsal has no Slurm to run on ({error}); scripts of the login node cannot run",
            ) from error
        status = "Success" if code == 0 else "Failed"
        instance = f"i-{draw(group.id, 17, '0123456789abcdef')}"
        return {
            "CommandId": command,
            "InstanceId": instance,
            "Status": status,
            "CommandPlugins": [
                {"Name": "script", "Status": status, "ResponseCode": code, "Output": output[-_OUTPUT:]}
            ],
        }

    def _rights(self, group: Record, request: Request) -> dict[str, str]:
        """Variables with the credentials of the role of a group's instances."""
        assert self._identities is not None
        profile = str((state_of(group.inputs) or {}).get("IamInstanceProfileArn"))
        role = next(
            (
                str(one.outputs.get("role"))
                for one in self._state.find(type=_PROFILE)
                if one.outputs.get("arn") == profile
            ),
            "",
        )
        arns = [
            str(one.outputs["arn"])
            for one in self._state.find(type="aws:iam/role:Role")
            if one.outputs.get("name") == role
        ]
        folder = self._home / "slurm" / re.sub(r"\W", "-", group.id)
        folder.mkdir(parents=True, exist_ok=True)
        token = self._identities.role_token(arns[0], "i-login", "ec2.amazonaws.com", folder)
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": self._url + CREDENTIALS_PATH,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
            "AWS_ENDPOINT_URL_S3": self._url,
            "AWS_REGION": request.region,
            MLFLOW: self._url,
        }


def _tags(group: Record) -> Mapping[str, str]:
    tags = dict((state_of(group.inputs) or {}).get("Tags") or {})
    return {**tags, _GROUP_TAG: group.id}


def _login(group: Record) -> bool:
    key, value = _LOGIN_TAG
    return _tags(group).get(key) == value
