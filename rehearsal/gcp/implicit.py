"""Parts of a project from its beginning: the default network with its parts, and default service accounts.

Also the subnetwork that a network in auto mode has in each region. They are made when they are first read,
and belong to no program. Sources: VPC documentation, "Default network" and "Auto mode IPv4 ranges",
"Pre-populated rules in the default network"; IAM documentation, "Default service accounts".
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from rehearsal.core.emulation.site import OWNER
from rehearsal.core.emulation.table import Row
from rehearsal.core.emulation.templates import digits, draw
from rehearsal.core.model import Properties, Record
from rehearsal.gcp.site import PACKAGE, Site
from rehearsal.gcp.table import TABLE

NETWORK, SUBNETWORK = "gcp:compute/network:Network", "gcp:compute/subnetwork:Subnetwork"
_FIREWALL, _ROUTE = "gcp:compute/firewall:Firewall", "gcp:compute/route:Route"
_ACCOUNT = "gcp:serviceaccount/account:Account"
_HOST = "https://www.googleapis.com/compute/v1/"
_WORD = re.compile(r"\{([^{}]+)\}")
_SUBNET_ID = re.compile(
    r"projects/(?P<project>[^/]+)/regions/(?P<region>[a-z]+-[a-z]+\d+)/subnetworks/(?P<name>[^/]+)"
)
_AUTO = ipaddress.IPv4Address("10.128.0.0")
_INTERNAL: list[dict[str, Any]] = [
    {"protocol": "tcp", "ports": ["0-65535"]},
    {"protocol": "udp", "ports": ["0-65535"]},
    {"protocol": "icmp"},
]
# Rule of the default network -> what it admits, and from where.
_RULES: Mapping[str, tuple[list[dict[str, Any]], str]] = {
    "default-allow-internal": (_INTERNAL, "10.128.0.0/9"),
    "default-allow-ssh": ([{"protocol": "tcp", "ports": ["22"]}], "0.0.0.0/0"),
    "default-allow-rdp": ([{"protocol": "tcp", "ports": ["3389"]}], "0.0.0.0/0"),
    "default-allow-icmp": ([{"protocol": "icmp"}], "0.0.0.0/0"),
}
# Address of a default account -> its name. {number} and {project} are the project's.
_ACCOUNTS = {
    "{number}-compute@developer.gserviceaccount.com": "Compute Engine default service account",
    "{project}@appspot.gserviceaccount.com": "App Engine default service account",
}


def canonical(row: Row, site: Site, id: str) -> str:
    """The id of a type for a short form of it, such as `name` or `project/location/name`.

    Source: hashicorp/terraform-provider-google google/tpgresource/import.go (ParseImportId): the last parts
    of the id, with project and location of the provider before them.
    """
    words, parts = _WORD.findall(row.id), site.path(id).split("/")
    if parts[0] == "projects" or not words or len(parts) > len(words):
        return site.path(id)
    given = [str(site.places.get(word, "")) for word in words[: len(words) - len(parts)]]
    values = iter([*given, *parts])
    return _WORD.sub(lambda _: next(values), row.id)


def find(site: Site, token: str, id: str) -> Record | None:
    """The part of a project with a whole id; it is made when it is read for the first time."""
    if token == SUBNETWORK:
        return _subnetwork(site, id)
    if token == _ACCOUNT:
        return account(site, id.rpartition("/")[2])
    if token in (NETWORK, _FIREWALL, _ROUTE) and id in _parts(site.project):
        _default(site)
        return site.state.get(PACKAGE, token, site.project, id)
    return None


def account(site: Site, email: str) -> Record | None:
    """The default service account with this address, or None."""
    for form, name in _ACCOUNTS.items():
        if email == form.format(number=site.number, project=site.project):
            key = f"projects/{site.project}/serviceAccounts/{email}"
            member = f"serviceAccount:{email}"
            outputs = {
                "accountId": email.partition("@")[0],
                "email": email,
                "name": key,
                "member": member,
                "displayName": name,
                "uniqueId": digits(email, 21),
                "disabled": False,
            }
            return _kept(site, _ACCOUNT, key, outputs, names={key, email, member})
    return None


def _parts(project: str) -> dict[str, tuple[str, Properties]]:
    """Id of each part of the default network -> its type and outputs."""
    network = f"projects/{project}/global/networks/default"
    route = f"default-route-{draw(f'{project}/route', 16)}"
    inside = {"network": f"{_HOST}{network}"}
    found: dict[str, tuple[str, Properties]] = {
        network: (
            NETWORK,
            {"description": "Default network for the project", "networkId": digits(network, 16)},
        ),
        f"projects/{project}/global/routes/{route}": (
            _ROUTE,
            {
                **inside,
                "destRange": "0.0.0.0/0",
                "nextHopGateway": "default-internet-gateway",
                "priority": 1000,
            },
        ),
    }
    for name, (allows, source) in _RULES.items():
        opening = {"allows": allows, "sourceRanges": [source], "priority": 65534, "direction": "INGRESS"}
        found[f"projects/{project}/global/firewalls/{name}"] = (_FIREWALL, {**inside, **opening})
    return found


def _default(site: Site) -> Record:
    """The default network of the project, with its rules and its route."""
    parts = iter(_parts(site.project).items())
    key, (token, outputs) = next(parts)
    network = _kept(site, token, key, outputs)
    for key, (token, outputs) in parts:
        _kept(site, token, key, outputs, owner=network)
    return network


def _subnetwork(site: Site, id: str) -> Record | None:
    """The subnetwork of a network in auto mode, which has the same name, in a region."""
    match = _SUBNET_ID.fullmatch(id)
    if match is None or match["project"] != site.project:
        return None
    name = match["name"]
    network = _default(site) if name == "default" else site.find(name, NETWORK.partition(":")[2])
    if network is None or network.outputs.get("autoCreateSubnetworks") is not True:
        return None
    start = int(_AUTO) + int(digits(match["region"], 2)) % 64 * 2**16
    block = f"{ipaddress.IPv4Address(start & ~0xFFFFF)}/20"
    outputs = {
        "region": match["region"],
        "network": network.outputs.get("selfLink"),
        "ipCidrRange": block,
        "gatewayAddress": str(ipaddress.ip_network(block)[1]),
    }
    return _kept(site, SUBNETWORK, id, outputs, owner=network)


def _kept(
    site: Site,
    token: str,
    id: str,
    outputs: Properties,
    *,
    names: set[str] | None = None,
    owner: Record | None = None,
) -> Record:
    """A resource of the project's own, made once."""
    found = site.state.get(PACKAGE, token, site.project, id)
    if found is not None:
        return found
    row, link = TABLE.row(token), f"{_HOST}{id}"
    whole = {
        **row.defaults,
        "name": id.rpartition("/")[2],
        "project": site.project,
        "selfLink": link,
        **outputs,
    }
    record = site.state.insert(
        package=PACKAGE,
        type=token,
        scope=site.project,
        id=id,
        urn="",
        name=str(whole["name"]),
        inputs={},
        outputs=whole,
    )
    site.state.issue(record, names or {id, link})
    site.state.refer(record, {OWNER: owner} if owner else {})
    return record
