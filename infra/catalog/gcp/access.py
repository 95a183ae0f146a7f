"""Checks of administrators and team members on Google Cloud."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from infra.errors import Problem

_MEMBER: Final = re.compile(r"(user|group):[^@\s:]+@[^@\s]+\.[^@\s]+")
_ADMIN: Final = re.compile(r"(user|group|serviceAccount):[^@\s:]+@[^@\s]+\.[^@\s]+")


def admin_problems(path: str, principals: Sequence[str]) -> Iterator[Problem]:
    """Users, groups or service accounts, each once."""
    if not principals:
        fix = "Name the deployer and the other administrators of the cluster."
        rule = "without an administrator the cluster is not accessible"
        yield Problem(path, [], rule, fix, code="administrator-missing")
    for index, principal in enumerate(principals):
        if not _ADMIN.fullmatch(principal):
            rule = "must be `user:`, `group:` or `serviceAccount:` and an e-mail address"
            fix = "Write it like group:platform@example.com."
            yield Problem(f"{path}[{index}]", principal, rule, fix, code="invalid-principal")
    if len({_same(one) for one in principals}) != len(principals):
        rule, fix = "a principal is named twice", "Name each once."
        yield Problem(path, list(principals), rule, fix, code="principal-named-twice")


def member_problems(path: str, principals: Sequence[str]) -> Iterator[Problem]:
    """Users or groups. Unlike IAM, the API server compares addresses case-sensitively."""
    for index, principal in enumerate(principals):
        if not _MEMBER.fullmatch(principal) or principal != principal.lower():
            rule = "must be `user:` or `group:` and an e-mail address in lower case"
            fix = "Write it like user:ada@example.com."
            yield Problem(f"{path}[{index}]", principal, rule, fix, code="invalid-member")


def apart_problems(
    path: str, principals: Sequence[str], admins_path: str, admins: Sequence[str]
) -> Iterator[Problem]:
    """Members of teams do not administer the cluster: RBAC only adds permissions."""
    administering = {_same(one) for one in admins}
    for index, principal in enumerate(principals):
        if _same(principal) in administering:
            fix = f"Leave it out here, or remove it from {admins_path}."
            rule = "administers the cluster, so limits of the team would not apply"
            yield Problem(
                f"{path}[{index}]", principal, rule, fix, against=admins_path, code="member-is-administrator"
            )


def _same(principal: str) -> str:
    """E-mail addresses of Google accounts are case-insensitive."""
    return principal.casefold()
