"""The service agents of Google's file services in a project."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.encryption import service_agent
from components.ordering import after

FILESTORE, LUSTRE = ("file", "cloud-filer"), ("lustre", "gcp-sa-lustre")
"""A service, and the domain of its agent (IAM documentation, "Service agents")."""


def agent(
    component: Component, name: str, service: tuple[str, str], *, project: str, number: pulumi.Input[str]
) -> pulumi.Output[str]:
    """The IAM member of a service's agent. It is created here; otherwise it comes with the first instance."""
    api, domain = service
    made = gcp.projects.ServiceIdentity(
        name, project=project, service=f"{api}.googleapis.com", opts=component.child()
    )
    return after(service_agent(number, domain), [made])
