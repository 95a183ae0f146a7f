"""Isolation of a rehearsal's processes from the credentials of real clouds.

SDKs look for credentials in variables, in files below the home folder, and at the metadata address of a
virtual machine. Variables with a cloud's prefix are removed unless they are known to be plain settings; files
and the metadata address are replaced by variables of the SDKs. A program that opens `~/.aws/credentials`
itself still finds it.

Only the standard library is imported here: every provider of every run starts with this module.
"""

import os
from collections.abc import Mapping
from pathlib import Path

_PREFIXES = (
    *("AWS_", "AMAZON_", "BOTO", "ECS_CONTAINER_METADATA_"),
    *("GOOGLE_", "GCLOUD_", "GCP_", "GCE_", "GKE_", "CLOUDSDK_"),
    *("AZURE_", "ARM_", "MSI_", "IDENTITY_", "IMDS_"),
    *("KUBE", "HELM_KUBE"),
    *(
        "PULUMI_ACCESS_TOKEN",
        "ACTIONS_ID_TOKEN_",
    ),  # Pulumi Cloud; an identity that clouds exchange for a role
)
# Settings of the real providers that may come from the environment (see `core.provider`).
SETTINGS = (
    *("AWS_REGION", "AWS_DEFAULT_REGION"),
    *("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GOOGLE_REGION", "GOOGLE_ZONE"),
    "KUBECONFIG",
)
_NOWHERE = "127.0.0.1:9"
# Access key with which programs of the user sign requests to the emulated services.
OPERATOR_KEY = OPERATOR_SECRET = "rehearsal"  # noqa: S105 - opens nothing but a rehearsal


def without_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that hold, or lead to, credentials of a cloud."""
    removed = credentials(variables)
    return {name: value for name, value in variables.items() if name not in removed}


def credentials(variables: Mapping[str, str]) -> frozenset[str]:
    """The names of the variables that hold, or lead to, credentials of a cloud."""
    return frozenset(name for name in variables if name.startswith(_PREFIXES) and name not in SETTINGS)


def elsewhere(empty: Path) -> dict[str, str]:
    """Variables that lead every SDK to useless credentials; `empty` is a folder without files."""
    return {
        # botocore signs every request, so it needs a key.
        "AWS_ACCESS_KEY_ID": OPERATOR_KEY,
        "AWS_SECRET_ACCESS_KEY": OPERATOR_SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://{_NOWHERE}",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "BOTO_CONFIG": os.devnull,
        "CLOUDSDK_CONFIG": str(empty),
        "GCE_METADATA_HOST": _NOWHERE,
        "GCE_METADATA_IP": _NOWHERE,
        "NO_GCE_CHECK": "true",
        "AZURE_CONFIG_DIR": str(empty),
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://{_NOWHERE}",
        "KUBECONFIG": os.devnull,
    }
