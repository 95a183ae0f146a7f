"""The identities of a person's jobs: which there are, and where one belongs (pure)."""

from typing import Literal

JobClass = Literal["training", "evaluation"]
"""What a job does, as far as its rights differ."""
_SUFFIX = ".iam.gserviceaccount.com"


def account_of(role: str) -> str:
    """The account of a role's ARN, or the project of a service account's address.

    Of a project `example.com:research`, addresses say `research.example.com` (IAM documentation, "Service
    accounts overview").
    """
    if role.startswith("arn:"):
        return role.split(":")[4]
    name, _, domain = role.partition("@")[2].removesuffix(_SUFFIX).partition(".")
    return f"{domain}:{name}" if domain else name
