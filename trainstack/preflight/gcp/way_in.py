"""Access from this machine to the cluster: the address of its API, and the login program."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.leftovers import cluster
from trainstack.preflight.gcp.project import Project, Row
from trainstack.preflight.machine import WAY_IN

_PROGRAM, _PLUGIN = "gke-auth-plugin", "gke-gcloud-auth-plugin"
_GCLOUD = "gcloud"
_ADD = "Add this machine to layout.api_access, deploy from within it, or set on.endpoint to dns."


def api(project: Project) -> Iterator[Answer]:
    """The API can be reached from here: the same `up` creates the objects in the cluster through it."""
    found, dns = cluster(project), project.on.endpoint == "dns"
    if found is not None:
        fix = "Check that this machine reaches *.gke.goog." if dns else _ADD
        yield project.machine.reaches(_host(project, found), fix)
    elif dns:
        yield Answer(WAY_IN, State.READY, "the API will have a public name; IAM controls access")
    elif not project.cluster.api_access:
        text = "the API has an address that no range can reach: the first up could not"
        yield Answer(WAY_IN, State.SHORT, text, _ADD)
    else:
        yield project.machine.will_reach(project.cluster.api_access)


def _host(project: Project, found: Row) -> str:
    """Source: discovery document container v1, ControlPlaneEndpointsConfig."""
    endpoints = found.get("controlPlaneEndpointsConfig") or {}
    if project.on.endpoint == "dns":
        return str((endpoints.get("dnsEndpointConfig") or {}).get("endpoint", ""))
    return str((endpoints.get("ipEndpointsConfig") or {}).get("publicEndpoint") or found.get("endpoint", ""))


def program(project: Project) -> Iterator[Answer]:
    """The plugin by which a kubeconfig logs in to GKE is installed."""
    yield project.machine.has_login_program(_PROGRAM, _PLUGIN, f"gcloud components install {_PLUGIN}")


def login(project: Project) -> Iterator[Answer]:
    """The program gcloud is installed: `up` loads accounts and submits the gate with it."""
    fix = "Install the Google Cloud CLI: https://cloud.google.com/sdk/docs/install"
    yield project.machine.has_login_program(_GCLOUD, _GCLOUD, fix)
