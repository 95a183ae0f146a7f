"""Regions, subnetworks, zones of DNS, tokens, URLs and address ranges of Google, as lookups show them.

Source: hashicorp/terraform-provider-google google/services (data_source_*.go of each); VPC documentation,
"Private Google Access" (restricted and private addresses), "Firewall rules for health checks"; IAP
documentation, "TCP forwarding"; Cloud DNS documentation, "Forwarding zones".
"""

import base64
import fnmatch
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.core.emulation.functions import Function
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, RefusalError
from rehearsal.gcp import facts
from rehearsal.gcp.site import Site

_SEED = (
    "Take it from a setting in the rehearsal; what exists in the real project: `trainstack rehearse seed`."
)
_FILTER = re.compile(r"(?P<key>\w+)\s*(?P<sign>=|:|eq)\s*\"?(?P<value>[^\"]+?)\"?")
_RANGES = {
    "restricted-googleapis": ["199.36.153.4/30"],
    "private-googleapis": ["199.36.153.8/30"],
    "dns-forwarders": ["35.199.192.0/19"],
    "iap-forwarders": ["35.235.240.0/20"],
    "health-checkers": ["35.191.0.0/16", "130.211.0.0/22"],
}


def _regions(site: Site, args: Properties) -> Properties:
    """Regions of the catalog: the real list has more."""
    return {**args, "id": f"projects/{site.project}", "names": sorted(facts.catalog().regions)}


def _subnetworks(site: Site, args: Properties) -> Properties:
    """Subnetworks of a region, by a filter of one comparison."""
    region = str(args.get("region") or site.located.get("region") or "")
    found = []
    for record in site.all("compute/subnetwork:Subnetwork"):
        if str(record.outputs.get("region", "")).rpartition("/")[2] in ("", region):
            names = ("name", "network", "ipCidrRange", "privateIpGoogleAccess", "selfLink", "description")
            found.append({name: record.outputs.get(name) for name in names})
    rows = [one for one in found if _passes(one, args.get("filter"))]
    return {**args, "id": f"projects/{site.project}/regions/{region}", "subnetworks": rows}


def _passes(row: Mapping[str, Any], text: object) -> bool:
    if not text:
        return True
    match = _FILTER.fullmatch(str(text).strip())
    if match is None or match["key"] not in row:
        raise RefusalError(
            "NotEmulated", f"the rehearsal does not know the filter {text!r}.", "Write name=VALUE."
        )
    value = str(row[match["key"]] or "")
    return fnmatch.fnmatchcase(value, match["value"]) or value.rpartition("/")[2] == match["value"]


def _ranges(site: Site, args: Properties) -> Properties:
    kind = str(args.get("rangeType") or "cloud-netblocks")
    if kind not in _RANGES:
        message = f"the rehearsal does not know the address ranges {kind}: Google changes them often."
        raise RefusalError("NotEmulated", message, f"Known are {', '.join(_RANGES)}. {_SEED}")
    blocks = _RANGES[kind]
    return {
        **args,
        "id": "netblock-ip-ranges",
        "cidrBlocks": blocks,
        "cidrBlocksIpv4s": blocks,
        "cidrBlocksIpv6s": [],
    }


def _access_token(site: Site, args: Properties) -> Properties:
    """A token that opens nothing."""
    account = str(args.get("targetServiceAccount"))
    token = f"ya29.{draw(f'{site.project}/{account}', 40)}"
    return {**args, "id": f"projects/-/serviceAccounts/{account}", "accessToken": token}


def _id_token(site: Site, args: Properties) -> Properties:
    """A token that opens nothing, in the form of a JSON Web Token."""
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    audience = str(args.get("targetAudience"))
    return {**args, "id": audience, "idToken": f"{head}.{draw(f'{site.project}/{audience}', 40)}."}


def _signed_url(site: Site, args: Properties) -> Properties:
    """A URL whose signature opens nothing."""
    bucket, path = args.get("bucket"), args.get("path")
    signature = hashlib.sha256(f"{bucket}/{path}".encode()).hexdigest()
    url = f"https://storage.googleapis.com/{bucket}/{path}?GoogleAccessId=rehearsal&Signature={signature}"
    return {**args, "id": url, "signedUrl": url}


def _registry(site: Site, args: Properties) -> Properties:
    """The address of Container Registry, which Artifact Registry serves now."""
    host = f"{args['region']}.gcr.io" if args.get("region") else "gcr.io"
    project = str(args.get("project") or site.project).replace(":", "/")
    url = f"{host}/{project}"
    end = f"@{args['digest']}" if args.get("digest") else f":{args['tag']}" if args.get("tag") else ""
    return {**args, "id": url, "repositoryUrl": url, "imageUrl": f"{url}/{args.get('name', '')}{end}"}


def _docker_image(site: Site, args: Properties) -> Properties:
    """An image of a repository that exists; its content is unknown, so its digest is made up of its name."""
    name, location = str(args.get("imageName")), args.get("location")
    project, repository = args.get("project") or site.project, args.get("repositoryId")
    parent = f"projects/{project}/locations/{location}/repositories/{repository}"
    if site.find(parent, "artifactregistry/repository:Repository") is None:
        raise RefusalError("notFound", f"Repository {parent} was not found.", f"Create it before. {_SEED}")
    short, _, digest = name.partition("@")
    plain, _, tag = short.partition(":")
    digest = digest or f"sha256:{hashlib.sha256(f'{parent}/{short}'.encode()).hexdigest()}"
    link = f"{location}-docker.pkg.dev/{project}/{repository}/{plain}@{digest}"
    return {
        **args,
        "id": f"{parent}/dockerImages/{plain}@{digest}",
        "name": f"{parent}/dockerImages/{plain}@{digest}",
        "selfLink": link,
        "tags": [tag] if tag else [],
        "imageSizeBytes": "0",
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
    }


def _locations(site: Site, args: Properties) -> Properties:
    return {**args, "id": f"projects/{site.project}", "locations": sorted(facts.catalog().regions)}


def _unknown(what: str) -> Function[Site]:
    """A function about what is above the project, of which a rehearsal knows nothing."""

    def refuse(site: Site, args: Properties) -> Properties:
        given = {name: value for name, value in args.items() if value is not None}
        raise RefusalError("NotEmulated", f"the rehearsal has no {what}: {given}.", _SEED)

    return refuse


FUNCTIONS: Mapping[str, Callable[[Site, Properties], Properties]] = {
    "compute/getRegions": _regions,
    "compute/getSubnetworks": _subnetworks,
    "compute/getNetblockIPRanges": _ranges,
    "serviceaccount/getAccountAccessToken": _access_token,
    "serviceaccount/getAccountIdToken": _id_token,
    "storage/getObjectSignedUrl": _signed_url,
    "container/getRegistryRepository": _registry,
    "container/getRegistryImage": _registry,
    "artifactregistry/getDockerImage": _docker_image,
    "cloudrun/getLocations": _locations,
    "organizations/getOrganization": _unknown("organization above the project"),
    "organizations/getFolder": _unknown("folder above the project"),
    "organizations/getActiveFolder": _unknown("folder above the project"),
    "organizations/getBillingAccount": _unknown("billing account"),
}
