"""Checks of cluster and group names; pods of system nodes."""

import re
from collections.abc import Iterator
from typing import Final

from infra.errors import Problem

# At most 40 characters (terraform-provider-google@e03b7622, google/services/container/resource_container_
# cluster.go).
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_GROUP: Final = re.compile(r"gke-security-groups@[^@\s]+\.[^@\s]+")
_LEAST_SYSTEM_PODS: Final = 64


def name_problems(path: str, name: str) -> Iterator[Problem]:
    """The name of a cluster."""
    if not _NAME.fullmatch(name):
        rule = "must be at most 40 lower-case letters, digits and dashes, a letter first and no dash last"
        yield Problem(path, name, rule, "Give the stack a shorter name.", code="invalid-cluster-name")


def group_problems(path: str, group: str) -> Iterator[Problem]:
    """The security group has the name that GKE requires ("Configure Google Groups for RBAC")."""
    if not _GROUP.fullmatch(group):
        rule, fix = "GKE accepts no other group name", "Write gke-security-groups@DOMAIN."
        yield Problem(path, group, rule, fix, code="invalid-google-group")


def system_pods(pods_per_node: int) -> int:
    """Maximum pods of a system node: about twenty agents of GKE, and the services of the stack."""
    return max(pods_per_node, _LEAST_SYSTEM_PODS)
