"""Checks of cluster names, administrators and members."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from infra.errors import Problem

# Source: botocore 1.44.5 eks/2017-11-01 ClusterName, read 2026-11-22.
_CLUSTER_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_PRINCIPAL: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/\S+")
# Path of the roles that IAM Identity Center creates for permission sets. Source: its user guide, "Referencing
# permission sets in resource policies, Amazon EKS, and AWS KMS", read 2026-11-23.
_PERMISSION_SETS: Final = "aws-reserved/sso.amazonaws.com/"
_SESSION: Final = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):sts::(?P<account>\d{12}):assumed-role/(?P<role>[^/]+)/.*"
)


def cluster_name_problems(path: str, name: str) -> Iterator[Problem]:
    """The name of an EKS cluster, unique per account and region."""
    if not _CLUSTER_NAME.fullmatch(name):
        rule = "must start with a letter or digit and hold at most 100 letters, digits, dashes, underscores"
        yield Problem(path, name, rule, "Choose another name.", code="invalid-cluster-name")


def admin_problems(path: str, principals: Sequence[str]) -> Iterator[Problem]:
    """IAM roles or users, each once: an access entry accepts no session of a role.

    Source: botocore 1.44.5 eks/2017-11-01 CreateAccessEntryRequest (principalArn), read 2026-11-22.
    """
    if not principals:
        fix = "Name the IAM role that deploys, and the others that administer the cluster."
        rule = "without an administrator the cluster is not accessible"
        yield Problem(path, [], rule, fix, code="administrator-missing")
    if len(set(principals)) != len(principals):
        rule, fix = "a principal is named twice", "Name each once."
        yield Problem(path, list(principals), rule, fix, code="principal-named-twice")
    yield from _form_problems(path, principals)


def member_problems(
    path: str, principals: Sequence[str], admins_path: str, admins: Sequence[str]
) -> Iterator[Problem]:
    """IAM roles or users that do not administer the cluster: each has one access entry in it."""
    yield from _form_problems(path, principals)
    for index, principal in enumerate(principals):
        if principal in admins:
            fix = f"Leave it out here, or remove it from {admins_path}."
            rule = "administers the cluster, and a principal has one access entry"
            yield Problem(
                f"{path}[{index}]", principal, rule, fix, against=admins_path, code="member-is-administrator"
            )


def _form_problems(path: str, principals: Sequence[str]) -> Iterator[Problem]:
    for index, principal in enumerate(principals):
        session = _SESSION.fullmatch(principal)
        if session:
            role = f"arn:{session['partition']}:iam::{session['account']}:role/{session['role']}"
            rule = "must be an IAM role or user, not a session of a role"
            fix = f"Write the role, with its path: {role}."
            yield Problem(f"{path}[{index}]", principal, rule, fix, code="principal-is-session")
        elif not _PRINCIPAL.fullmatch(principal):
            fix = "Write it like arn:aws:iam::123456789012:role/platform."
            rule = "must be the ARN of an IAM role or user"
            yield Problem(f"{path}[{index}]", principal, rule, fix, code="invalid-principal-arn")
        elif "/AWSReservedSSO_" in principal and _PERMISSION_SETS not in principal:
            rule = "the role of a permission set has a path, which its sessions do not show"
            fix = f"`aws iam list-roles --path-prefix /{_PERMISSION_SETS}` shows its ARN."
            yield Problem(f"{path}[{index}]", principal, rule, fix, code="permission-set-path-missing")
