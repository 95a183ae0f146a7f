"""The service account of nodes: permissions of kubelet and GKE's agents, none of pods."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.ordering import after
from infra.naming import sanitize

# The minimum roles of a node's account (GKE documentation, "Configure GKE node service accounts", read
# 2026-11-25), and images of the project's own registries ("Artifact Registry Reader" there).
ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
# Ids have 6 to 30 characters (IAM documentation, "Create service accounts").
_ACCOUNT_ID = 30


def node_account(component: Component, name: str, *, project: str) -> pulumi.Output[str]:
    """The e-mail address of a service account for all nodes of a cluster; usable once it has its roles."""
    account = gcp.serviceaccount.Account(
        f"{name}-nodes",
        project=project,
        account_id=sanitize(f"{name}-nodes", max_length=_ACCOUNT_ID),
        display_name=f"Nodes of {name}",
        opts=component.child(),
    )
    roles = [
        gcp.projects.IAMMember(
            f"{name}-nodes-{sanitize(role.partition('.')[2])}",
            project=project,
            role=role,
            member=account.member,
            opts=component.child(),
        )
        for role in ROLES
    ]
    return after(account.email, roles)
