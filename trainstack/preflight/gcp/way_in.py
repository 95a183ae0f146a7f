"""Access from this machine to the cluster: the address of its API, and the login program."""

import ipaddress
from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.leftovers import cluster
from trainstack.preflight.gcp.project import Project, Row

_CHECK, _PROGRAM = "way-in", "gke-auth-plugin"
_PLUGIN = "gke-gcloud-auth-plugin"
_HTTPS = 443


def api(project: Project) -> Iterator[Answer]:
    """The API can be reached from here: the same `up` creates the objects in the cluster through it."""
    found = cluster(project)
    if found is None:
        yield _before_creation(project)
        return
    host = _host(project, found)
    if host and project.machine.connects(host, _HTTPS):
        yield Answer(_CHECK, State.READY, f"{host} accepts connections from here")
        return
    text = f"{host or 'the API'} does not accept connections from here"
    fix = "Check that this machine reaches *.gke.goog." if project.on.endpoint == "dns" else _ADD
    yield Answer(_CHECK, State.SHORT, text, fix)


_ADD = "Add this machine to layout.api_access, deploy from within it, or set on.endpoint to dns."


def _host(project: Project, found: Row) -> str:
    """Source: discovery document container v1, ControlPlaneEndpointsConfig."""
    endpoints = found.get("controlPlaneEndpointsConfig") or {}
    if project.on.endpoint == "dns":
        return str((endpoints.get("dnsEndpointConfig") or {}).get("endpoint", ""))
    return str((endpoints.get("ipEndpointsConfig") or {}).get("publicEndpoint") or found.get("endpoint", ""))


def _before_creation(project: Project) -> Answer:
    """The answer for a cluster that does not exist yet: whether its API will accept this machine."""
    if project.on.endpoint == "dns":
        text = "the API will have a public name; IAM controls access"
        return Answer(_CHECK, State.READY, text)
    allowed = [ipaddress.IPv4Network(cidr) for cidr in project.cluster.api_access]
    if not allowed:
        text = "the API has an address that no range can reach: the first up could not"
        return Answer(_CHECK, State.SHORT, text, _ADD)
    try:
        mine = ipaddress.ip_address(project.machine.address())
    except (OSError, ValueError) as error:
        text = f"the public address of this machine is unknown: {error}"
        return Answer(_CHECK, State.UNKNOWN, text, "Check that it is within layout.api_access.")
    if any(mine in network for network in allowed):
        return Answer(_CHECK, State.READY, f"{mine} is within layout.api_access")
    text = f"{mine}, this machine, is not within layout.api_access"
    return Answer(_CHECK, State.SHORT, text, f"Add {mine}/32 to layout.api_access, or deploy from within it.")


def program(project: Project) -> Iterator[Answer]:
    """The plugin by which a kubeconfig logs in to GKE is installed."""
    found = project.machine.finds(_PLUGIN)
    if found:
        yield Answer(_PROGRAM, State.READY, found)
    else:
        text = f"`{_PLUGIN}` is not installed; the deployment needs it to log in to the cluster"
        yield Answer(_PROGRAM, State.SHORT, text, f"gcloud components install {_PLUGIN}")
