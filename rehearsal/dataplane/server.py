"""A loopback HTTP server that speaks enough of AWS for boto3 inside pods.

Secrets Manager (GetSecretValue, PutSecretValue, DescribeSecret), STS GetCallerIdentity, and the endpoint from
which EKS Pod Identity hands out credentials. Every other action is answered with an error that names it.
"""

import json
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from infra.engine.http_peers import OwnUserHttpServer
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.identity import Caller, Denied, Identities
from rehearsal.dataplane.policies import Request, allowed, role_record
from rehearsal.dataplane.secret_store import CURRENT, ConflictError, SecretStore, Version

CREDENTIALS_PATH = "/v1/credentials"
_KEY_ID = re.compile(r"Credential=([^/,\s]+)/\d+/([^/]+)/([^/]+)/aws4_request")


class ServiceError(Exception):
    """An error in the service's own terms."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        self.code, self.message, self.status = code, message, status
        super().__init__(f"{code}: {message}")


class Dataplane:
    """The server, running in threads of this process from the start until `stop`."""

    def __init__(self, state: State) -> None:
        self.identities = Identities(state)
        self._state, self._secrets = state, SecretStore(state)
        plane = self

        class Handler(_Handler):
            dataplane = plane

        self._server = OwnUserHttpServer(("127.0.0.1", 0), Handler)
        threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="dataplane", daemon=True
        ).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, target: str, body: dict[str, Any], caller: Caller, region: str) -> dict[str, Any]:
        """The answer of Secrets Manager to one call. Raises ServiceError."""
        action = target.rpartition(".")[2]
        if not target.startswith("secretsmanager.") or action not in (
            "GetSecretValue", "PutSecretValue", "DescribeSecret",
        ):  # fmt: skip
            raise ServiceError("UnknownOperationException", f"{target or 'this action'} is not emulated")
        reference = str(body.get("SecretId") or "")
        found = self._secrets.find(reference)
        arn, record = found if found else (reference, None)
        self._authorise(caller, f"secretsmanager:{action}", arn, region, record)
        if found is None:
            raise ServiceError(
                "ResourceNotFoundException", "Secrets Manager can't find the specified secret."
            )
        name = str(record.outputs.get("name")) if record else arn.rpartition(":secret:")[2]
        if action == "DescribeSecret":
            stages = {version.id: list(version.stages) for version in self._secrets.versions(arn)}
            return {"ARN": arn, "Name": name, "VersionIdsToStages": stages}
        if action == "PutSecretValue":
            version = self._put(arn, body)
            return {"ARN": arn, "Name": name, "VersionId": version.id, "VersionStages": list(version.stages)}
        version = self._get(arn, body)
        return {
            "ARN": arn,
            "Name": name,
            "VersionId": version.id,
            "SecretString": version.value,
            "VersionStages": list(version.stages),
        }

    def _get(self, arn: str, body: dict[str, Any]) -> Version:
        stage, wanted = str(body.get("VersionStage") or CURRENT), body.get("VersionId")
        for version in self._secrets.versions(arn):
            if version.id == wanted if wanted else stage in version.stages:
                return version
        raise ServiceError(
            "ResourceNotFoundException",
            f"Secrets Manager can't find the specified secret value for staging label: {stage}",
        )

    def _put(self, arn: str, body: dict[str, Any]) -> Version:
        token = str(body.get("ClientRequestToken") or uuid.uuid4())
        if not 32 <= len(token) <= 64:
            raise ServiceError(
                "InvalidParameterException", "ClientRequestToken must be 32-64 characters long."
            )
        if not isinstance(body.get("SecretString"), str):
            raise ServiceError("InvalidRequestException", "You must provide SecretString.")
        try:
            return self._secrets.put(arn, body["SecretString"], token)
        except ConflictError:
            raise ServiceError(
                "ResourceExistsException",
                f"A previous request used ClientRequestToken {token} with another value.",
            ) from None

    def _authorise(self, caller: Caller, action: str, arn: str, region: str, secret: Record | None) -> None:
        """The role must be allowed to act on the secret, and to use the customer's key where it has one."""
        context = {"aws:RequestedRegion": region, "aws:SecureTransport": "true"}
        checks = [Request(action, arn, context)]
        key = secret.inputs.get("kmsKeyId") if secret else None
        if key and action != "secretsmanager:DescribeSecret":
            through = {**context, "kms:ViaService": f"secretsmanager.{region}.amazonaws.com"}
            needed = ["kms:Decrypt"] + (["kms:GenerateDataKey"] if action.endswith("PutSecretValue") else [])
            checks += [Request(name, self._key_arn(str(key)), through) for name in needed]
        role = role_record(self._state, caller.role_arn)
        for check in checks:
            if role is None or not allowed(self._state, role, check):
                raise ServiceError(
                    "AccessDeniedException",
                    f"User: {caller.arn} is not authorized to perform: {check.action} on resource: "
                    f"{check.resource} "
                    f"because no identity-based policy allows the {check.action} action",
                )

    def _key_arn(self, key: str) -> str:
        for record in self._state.issued(key):
            if record.outputs.get("arn"):
                return str(record.outputs["arn"])
        return key


class _Handler(BaseHTTPRequestHandler):
    dataplane: Dataplane
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing: requests carry tokens."""

    def do_GET(self) -> None:
        """Credentials of a pod."""
        if self.path != CREDENTIALS_PATH:
            self._reply(404, {"message": "not found"})
            return
        try:
            token = self.headers.get("Authorization", "")
            self._reply(200, dict(self.dataplane.identities.credentials(token)))
        except Denied as error:
            self._reply(400, {"code": "AccessDeniedException", "message": str(error)})

    def do_POST(self) -> None:
        """An API call, in the JSON protocol or, for STS, the query protocol."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            caller, region, service = self._caller()
            if service == "sts":
                self._sts(parse_qs(body.decode()), caller)
                return
            target = self.headers.get("X-Amz-Target", "")
            self._reply(200, self.dataplane.answer(target, json.loads(body or b"{}"), caller, region))
        except ServiceError as error:
            self._reply(error.status, {"__type": error.code, "message": error.message})

    def _caller(self) -> tuple[Caller, str, str]:
        found = _KEY_ID.search(self.headers.get("Authorization", ""))
        if found is None:
            raise ServiceError(
                "MissingAuthenticationTokenException", "Request is missing Authentication Token", 403
            )
        caller = self.dataplane.identities.caller(found[1], self.headers.get("X-Amz-Security-Token", ""))
        if caller is None:
            raise ServiceError(
                "UnrecognizedClientException", "The security token included in the request is invalid."
            )
        return caller, found[2], found[3]

    def _sts(self, form: dict[str, list[str]], caller: Caller) -> None:
        if form.get("Action") != ["GetCallerIdentity"]:
            raise ServiceError("InvalidAction", f"{form.get('Action')} is not emulated")
        account = caller.role_arn.split(":")[4]
        text = (
            '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
            f"<Arn>{caller.arn}</Arn><UserId>AROA:{caller.session}</UserId><Account>{account}</Account>"
            "</GetCallerIdentityResult></GetCallerIdentityResponse>"
        )
        self._send(200, text.encode(), "text/xml")

    def _reply(self, status: int, content: dict[str, Any]) -> None:
        self._send(status, json.dumps(content).encode(), "application/x-amz-json-1.1")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-amzn-RequestId", str(uuid.uuid4()))
        self.end_headers()
        self.wfile.write(content)
