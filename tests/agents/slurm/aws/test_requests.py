"""Signatures are those of botocore."""

import hashlib
import importlib
from typing import Any

import pytest

from agents.slurm.aws import requests

auth: Any = importlib.import_module("botocore.auth")
AWSRequest: Any = importlib.import_module("botocore.awsrequest").AWSRequest
Credentials: Any = importlib.import_module("botocore.credentials").Credentials
KEYS = {"AccessKeyId": "AKID", "SecretAccessKey": "secret", "Token": "token"}
BODY = b'{"name": "Vision"}'
HOST = "https://mlflow.sagemaker.eu-central-1.app.aws"


@pytest.mark.parametrize(
    ("service", "path"),
    [
        ("sagemaker", "/api/2.0/mlflow/runs/create"),
        ("sagemaker", "/api/2.0/mlflow/experiments/get-by-name?experiment_name=Vision%27s%20%2B%20Lab&a="),
        ("sagemaker", "/api/2.0/mlflow/logged-models/m%20x/tags"),
        ("s3", "/bucket/mlflow/1/notes/first%20file%2B.txt"),
        ("s3", "/bucket?list-type=2&delimiter=%2F&prefix=mlflow%2F1%2F"),
    ],
)
def test_a_signature_is_that_of_botocore(service: str, path: str) -> None:
    url, digest = HOST + path, hashlib.sha256(BODY).hexdigest()
    made = requests.signed(
        KEYS, "POST", url, ("eu-central-1", service), digest=digest, headers={"content-type": "a/b"}
    )
    signed = {key: value for key, value in made.items() if key not in ("authorization", "host")}
    request = AWSRequest(method="POST", url=url, headers=signed, data=BODY)
    request.context["timestamp"] = made["x-amz-date"]
    kind = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    signer = kind(Credentials("AKID", "secret", "token"), service, "eu-central-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert made["authorization"].endswith(f"Signature={signer.signature(text, request)}")
