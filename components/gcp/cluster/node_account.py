"""The service account of nodes: permissions of kubelet and GKE's agents, none of pods."""

import pulumi

from components.base import Component
from components.gcp import iam
from components.ordering import after
from infra.naming import sanitize

# The minimum roles of a node's account (GKE documentation, "Configure GKE node service accounts", read
# 2026-11-25), and images of the project's own registries ("Artifact Registry Reader" there).
ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")


def node_account(component: Component, name: str, *, project: str) -> pulumi.Output[str]:
    """The e-mail address of a service account for all nodes of a cluster; usable once it has its roles."""
    called = f"{name}-nodes"
    account = iam.service_account(component, called, called, f"Nodes of {name}", project=project)
    roles = [
        iam.on_project(
            component, f"{called}-{sanitize(role.partition('.')[2])}", project, role, account.member
        )
        for role in ROLES
    ]
    return after(account.email, roles)
