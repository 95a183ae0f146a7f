"""Requests to AWS from a pod or a job there, with the permissions of its role."""

import hashlib
import importlib
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

# Two attempts at most; connecting and reading take a part of the time each.
_ATTEMPTS, _PARTS = 2, 4
_MLFLOW_APP = re.compile(r"[^:]*:[^:]*:sagemaker:([^:]*):[^:]*:mlflow-app/")


def client(service: str, seconds: float, region: str | None = None) -> Any:
    """Return a client whose calls take at most so many seconds, by default for the region in AWS_REGION.

    Raises ImportError where an image lacks boto3, and boto3's exceptions.
    """
    limits = {
        "connect_timeout": seconds / _PARTS,
        "read_timeout": seconds / _PARTS,
        "retries": {"total_max_attempts": _ATTEMPTS},
    }
    boto3: Any = importlib.import_module("boto3")  # not in every training image
    config = importlib.import_module("botocore.config").Config(**limits)
    return boto3.client(service, region_name=region or os.environ.get("AWS_REGION"), config=config)


class MlflowApp:
    """The tracking server that SageMaker runs, identified by its ARN.

    Requests go to one address for all apps of a region; headers identify the app and the caller. They
    are signed for `sagemaker` (older tracking servers: `sagemaker-mlflow`). The role needs
    `sagemaker:CallMlflowAppApi`. Source: sagemaker-mlflow 0.5.0, mlflow_sagemaker_helpers.py.
    """

    def __init__(self, arn: str, environment: Mapping[str, str]) -> None:
        """Raises ImportError where an image lacks boto3, ValueError for another ARN or no credentials."""
        found = _MLFLOW_APP.match(arn)
        if found is None:
            raise ValueError(f"{arn}: no MLflow App, arn:aws:sagemaker:REGION:ACCOUNT:mlflow-app/ID")
        self._arn, region = arn, found[1]
        # A variable of Amazon's own plug-in for MLflow.
        self.address = (
            environment.get("SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT")
            or f"https://mlflow.sagemaker.{region}.app.aws"
        )
        boto3: Any = importlib.import_module("boto3")
        self._credentials = boto3.Session().get_credentials()
        if self._credentials is None:
            raise ValueError("there are no credentials of AWS")
        self._auth, self._region = importlib.import_module("botocore.auth"), region
        self._request = importlib.import_module("botocore.awsrequest").AWSRequest

    def headers(
        self, method: str, url: str, content: bytes | None, known: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the headers of one request, signature included; `known` are signed, too."""
        digest = hashlib.sha256(content or b"").hexdigest()
        signed = {**known, "x-sm-mlflow-app-arn": self._arn, "X-Amz-Content-SHA256": digest}
        request = self._request(method=method, url=url, data=content, headers=signed)
        # Frozen: while keys are renewed, key, secret and token would be of different ones.
        frozen = self._credentials.get_frozen_credentials()
        self._auth.SigV4Auth(frozen, "sagemaker", self._region).add_auth(request)
        return dict(request.headers.items())


def put_object(uri: str, content: bytes, seconds: float) -> None:
    """Write one object of S3, `s3://bucket/key`. Raises ImportError, and boto3's exceptions."""
    place = urlsplit(uri)
    client("s3", seconds).put_object(Bucket=place.netloc, Key=place.path.lstrip("/"), Body=content)


def publish(topic: str, subject: str, text: str, seconds: float) -> None:
    """Publish to an SNS topic, by its ARN. Raises boto3's exceptions, ImportError where an image lacks it."""
    sns = client("sns", seconds, region=topic.split(":")[3])
    sns.publish(TopicArn=topic, Subject=subject, Message=text)
