"""AWS Secrets Manager for the program of the tracking pods; runs beside `serve.py` in the server's image.

Implements `agents.mlflow_server.serve.CredentialStore`. AWS_REGION names the region of the secrets.
"""

import importlib
import json
from collections.abc import Mapping
from typing import Any

# Secrets Manager keeps one value per request token. Replicas that start together all use this token, so only
# the first write succeeds and the others read its value. 32 to 64 characters.
FIRST_VALUE = "trainstack-mlflow-admin-first-value"


class AwsSecrets:
    """Secrets by ARN."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def read(self, secret: str) -> tuple[dict[str, str], str] | None:
        """The fields and the version id of the current value; None while there is none."""
        try:
            answer = self._client.get_secret_value(SecretId=secret)
        except self._client.exceptions.ResourceNotFoundException:
            return None
        return json.loads(answer["SecretString"]), answer["VersionId"]

    def store_first(self, secret: str, fields: Mapping[str, str]) -> bool:
        """Store the first value; False when another replica stored one."""
        try:
            self._client.put_secret_value(
                SecretId=secret, ClientRequestToken=FIRST_VALUE, SecretString=json.dumps(dict(fields))
            )
        except self._client.exceptions.ResourceExistsException:
            return False
        return True


def connect(environment: Mapping[str, str]) -> AwsSecrets:
    """The store of the region in AWS_REGION. Raises ValueError when that is not set."""
    if not environment.get("AWS_REGION"):
        raise ValueError("AWS_REGION is not set")
    boto3: Any = importlib.import_module("boto3")
    return AwsSecrets(boto3.client("secretsmanager", region_name=environment["AWS_REGION"]))
