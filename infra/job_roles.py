"""Classes of job identities, and the account or project of an identity, on every cloud (pure)."""

from typing import Literal

JobClass = Literal["training", "evaluation"]
"""Class of a job, by its permissions."""
_SUFFIX = ".iam.gserviceaccount.com"


def account_of(role: str) -> str:
    """The account of a role's ARN, or the project of a service account's address.

    For a project `example.com:research`, addresses have `research.example.com` (IAM documentation, "Service
    accounts overview").
    """
    if role.startswith("arn:"):
        return role.split(":")[4]
    name, _, domain = role.partition("@")[2].removesuffix(_SUFFIX).partition(".")
    return f"{domain}:{name}" if domain else name
