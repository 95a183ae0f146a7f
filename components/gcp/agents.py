"""Service agents: the accounts by which Google's services act in a project."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.encryption import service_agent
from components.ordering import after

FILESTORE, LUSTRE = ("file", "cloud-filer"), ("lustre", "gcp-sa-lustre")
EVENTARC = ("eventarc", "gcp-sa-eventarc")
GKE, COMPUTE = ("container", "container-engine-robot"), ("compute", "compute-system")
"""A service, and the domain of its agent (IAM documentation, "Service agents")."""


def agent(
    component: Component, name: str, service: tuple[str, str], *, project: str, number: pulumi.Input[str]
) -> pulumi.Output[str]:
    """The IAM member of a service's agent, which is created here.

    Otherwise it comes some time after the API is enabled, or with the first instance; until then IAM knows no
    such member, and the provider gives up (terraform-provider-google google/tpgiamresource/iam.go). Its
    grants are `components.gcp.propagation.settled`.
    """
    api, domain = service
    made = gcp.projects.ServiceIdentity(
        name, project=project, service=f"{api}.googleapis.com", opts=component.child()
    )
    return after(service_agent(number, domain), [made])
