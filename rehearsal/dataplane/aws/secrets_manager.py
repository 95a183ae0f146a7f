"""Secrets Manager for boto3: GetSecretValue, PutSecretValue, DescribeSecret."""

import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.authorization import authorise, context_of, key_checks
from rehearsal.dataplane.aws.http import JsonService, Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.dataplane.aws.secret_store import CURRENT, ConflictError, SecretStore, Version


class SecretsManager(JsonService):
    """Reads and writes the values of emulated secrets."""

    target = "secretsmanager"

    def __init__(self, state: State) -> None:
        self._state, self._secrets = state, SecretStore(state)

    def operations(self) -> Mapping[str, Operation]:
        """See `JsonService`."""
        return {"GetSecretValue": self._get, "PutSecretValue": self._put, "DescribeSecret": self._describe}

    def _get(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        found = self._found(request, body)
        stage, wanted = str(body.get("VersionStage") or CURRENT), body.get("VersionId")
        for version in self._secrets.versions(found["ARN"]):
            if version.id == wanted if wanted else stage in version.stages:
                return {**found, **_shown(version), "SecretString": version.value}
        raise ServiceError(
            "ResourceNotFoundException",
            f"Secrets Manager can't find the specified secret value for staging label: {stage}",
        )

    def _put(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        found = self._found(request, body)
        token = str(body.get("ClientRequestToken") or uuid.uuid4())
        if not 32 <= len(token) <= 64:
            raise ServiceError(
                "InvalidParameterException", "ClientRequestToken must be 32-64 characters long."
            )
        if not isinstance(body.get("SecretString"), str):
            raise ServiceError("InvalidRequestException", "You must provide SecretString.")
        try:
            return {**found, **_shown(self._secrets.put(found["ARN"], body["SecretString"], token))}
        except ConflictError:
            raise ServiceError(
                "ResourceExistsException",
                f"A previous request used ClientRequestToken {token} with another value.",
            ) from None

    def _describe(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        found = self._found(request, body)
        stages = {version.id: list(version.stages) for version in self._secrets.versions(found["ARN"])}
        return {**found, "VersionIdsToStages": stages}

    def _found(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        """ARN and name of the secret. Raises ServiceError without access, or without the secret."""
        reference = str(body.get("SecretId") or "")
        found = self._secrets.find(reference)
        arn, record = found if found else (reference, None)
        self._authorise(request, arn, record)
        if found is None:
            raise ServiceError(
                "ResourceNotFoundException", "Secrets Manager can't find the specified secret."
            )
        name = str(record.outputs.get("name")) if record else arn.rpartition(":secret:")[2]
        return {"ARN": arn, "Name": name}

    def _authorise(self, request: Request, arn: str, secret: Record | None) -> None:
        """Require access to the secret, and to its customer managed key, if any."""
        checks = [AccessCheck(f"secretsmanager:{request.action}", arn, context_of(request.region))]
        key = secret.inputs.get("kmsKeyId") if secret else None
        if key and request.action != "DescribeSecret":
            more = ["kms:GenerateDataKey"] if request.action == "PutSecretValue" else []
            needed = ["kms:Decrypt", *more]
            checks += key_checks(self._state, str(key), request.region, "secretsmanager", needed)
        authorise(self._state, request.caller, checks)


def _shown(version: Version) -> dict[str, Any]:
    return {"VersionId": version.id, "VersionStages": list(version.stages)}
