"""Trust policies of the roles of an account: who assumes them, under which conditions."""

from collections.abc import Mapping, Sequence
from typing import Any

from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from trainstack.bootstrap.trust import Pipeline

Document = dict[str, Any]


def assumed(role: str, external_id: str | Sequence[str]) -> Document:
    """The trust policy of a role that another role assumes with an external id."""
    return document(
        {
            "Effect": "Allow",
            "Principal": {"AWS": role},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
        }
    )


def federated(account: str, trust: Pipeline, subjects: tuple[str, ...]) -> Document:
    """The trust policy of a role of a pipeline."""
    host = trust.issuer.removeprefix("https://")
    subject: Document = {f"{host}:sub": subjects[0] if len(subjects) == 1 else [*subjects]}
    audience: Document = {f"{host}:aud": trust.audience}
    patterns = any("*" in one for one in subjects)
    condition = {"StringEquals": audience} | (
        {"StringLike": subject} if patterns else {"StringEquals": audience | subject}
    )
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Federated": f"arn:aws:iam::{account}:oidc-provider/{host}"},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": condition,
        }
    )


def of_guest(deployer: str, specs: Sequence[StackSpec]) -> Document:
    """The trust policy of the deployer of clusters in an account of their own.

    `deployer`: that of their large stack, which assumes it with the external ids of their stack files.
    """
    given = [spec.on.assume_role for spec in specs if isinstance(spec.on, AwsSpec)]
    ids = {login.external_id if login else None for login in given}
    if None in ids or not ids:
        trusted = {"Effect": "Allow", "Principal": {"AWS": deployer}, "Action": "sts:AssumeRole"}
        return document(trusted)
    found = sorted(one for one in ids if one)
    return assumed(deployer, found[0] if len(found) == 1 else found)


def document(*statements: Mapping[str, Any]) -> Document:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": [*statements]}
