"""Who administers a cluster, and who works in its teams."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from infra.errors import Problem

_MEMBER: Final = re.compile(r"(user|group):[^@\s:]+@[^@\s]+\.[^@\s]+")
_ADMIN: Final = re.compile(r"(user|group|serviceAccount):[^@\s:]+@[^@\s]+\.[^@\s]+")


def admin_problems(path: str, principals: Sequence[str]) -> Iterator[Problem]:
    """Users, groups or service accounts, each once."""
    if not principals:
        fix = "Name who deploys, and the others that administer the cluster."
        yield Problem(
            path,
            [],
            "without an administrator no one can reach the cluster",
            fix,
            code="administrator-missing",
        )
    for index, principal in enumerate(principals):
        if not _ADMIN.fullmatch(principal):
            rule = "must be `user:`, `group:` or `serviceAccount:` and an e-mail address"
            yield Problem(
                f"{path}[{index}]",
                principal,
                rule,
                "Write it like group:platform@example.com.",
                code="invalid-principal",
            )
    if len({_same(one) for one in principals}) != len(principals):
        yield Problem(
            path,
            list(principals),
            "a principal is named twice",
            "Name each once.",
            code="principal-named-twice",
        )


def member_problems(path: str, principals: Sequence[str]) -> Iterator[Problem]:
    """Users or groups. The API server compares their addresses letter by letter, which IAM does not."""
    for index, principal in enumerate(principals):
        if not _MEMBER.fullmatch(principal) or principal != principal.lower():
            rule = "must be `user:` or `group:` and an e-mail address in lower case"
            yield Problem(
                f"{path}[{index}]",
                principal,
                rule,
                "Write it like user:ada@example.com.",
                code="invalid-member",
            )


def apart_problems(
    path: str, principals: Sequence[str], admins_path: str, admins: Sequence[str]
) -> Iterator[Problem]:
    """Members of teams do not administer the cluster: RBAC adds up rights, and takes none away."""
    administering = {_same(one) for one in admins}
    for index, principal in enumerate(principals):
        if _same(principal) in administering:
            fix = f"Leave it out here, or take it out of {admins_path}."
            rule = "administers the cluster, so a team's limits would not hold"
            yield Problem(
                f"{path}[{index}]", principal, rule, fix, against=admins_path, code="member-is-administrator"
            )


def _same(principal: str) -> str:
    """E-mail addresses of Google accounts are the same in any case."""
    return principal.casefold()
