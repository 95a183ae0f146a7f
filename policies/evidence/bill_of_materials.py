"""CycloneDX 1.6 bill of materials of a stack: images, charts, EKS add-ons, provider plug-ins.

The bill is marked as incomplete: images of a chart or an add-on are not in a state.
"""

import datetime
import hashlib
import json
import uuid
from collections.abc import Iterator
from importlib import metadata
from typing import Any
from urllib.parse import quote

from policies.audit import Audit, Inputs
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.kubernetes import pods

_RELEASE, _ADDON = "kubernetes:helm.sh/v3:Release", "aws:eks/addon:Addon"
_TOOL = "trainstack"


def document(audit: Audit, inputs: Inputs) -> dict[str, Any]:
    """The bill. Its serial number is derived from its content, so that equal bills have equal ones."""
    found: dict[str, dict[str, Any]] = {}
    for resource in inputs.resources:
        for part in _of(resource):
            found.setdefault(part["bom-ref"], part)
    body = {
        "metadata": {
            "timestamp": moment(inputs),
            "tools": {"components": [{"type": "application", "name": _TOOL, "version": version()}]},
            "component": {
                "type": "platform",
                "bom-ref": "stack",
                "name": ", ".join(sorted(audit.stacks)) or inputs.kind,
            },
        },
        "components": [found[ref] for ref in sorted(found)],
        "dependencies": [{"ref": "stack", "dependsOn": sorted(found)}],
        "compositions": [{"aggregate": "incomplete", "assemblies": ["stack"]}],
    }
    digest = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    serial = uuid.uuid5(uuid.NAMESPACE_OID, digest)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **body,
    }


def moment(inputs: Inputs) -> str:
    """The time of the audit."""
    return inputs.at.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def version() -> str:
    """Installed version of trainstack."""
    try:
        return metadata.version(_TOOL)
    except metadata.PackageNotFoundError:
        return "not installed"


def _of(resource: Resource) -> Iterator[dict[str, Any]]:
    """Components of a resource, without unknown values."""
    if resource.plugin:
        yield _part("library", "plugin", resource.kind.partition(":")[0], resource.plugin)
    if resource.kind == _ADDON:
        yield _part("application", "eks-addon", _text(resource, "addonName"), _text(resource, "addonVersion"))
    elif resource.kind == _RELEASE:
        yield _chart(resource)
    elif resource.kind in pods.KINDS:
        yield from map(_image, _images(resource))


def _part(kind: str, group: str, name: str, version: str = "", **more: Any) -> dict[str, Any]:
    made = {"type": kind, "bom-ref": f"{group}:{name}@{version}", "group": group, "name": name or "not known"}
    return {**made, **({"version": version} if version else {}), **more}


def _chart(release: Resource) -> dict[str, Any]:
    chart, source = _text(release, "chart"), _text(release, "repositoryOpts.repo")
    if chart.startswith("oci://"):
        source, _, chart = chart.rpartition("/")
    where = [{"type": "distribution", "url": _without_login(source)}] if source else []
    more = {"externalReferences": where} if where else {}
    return _part("application", "helm", chart, _text(release, "version"), **more)


def _without_login(address: str) -> str:
    scheme, slashes, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def _images(workload: Resource) -> Iterator[str]:
    try:
        for _, container, _ in pods.containers(workload):
            image = container.get("image")
            if isinstance(image, str) and image:
                yield image
    except UndeterminedError:
        return


def _image(image: str) -> dict[str, Any]:
    """An image, with its package URL (purl-spec, type oci) if its digest is known."""
    rest, _, digest = image.partition("@")
    repository, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = rest, ""
    given = digest or tag
    more: dict[str, Any] = {}
    if digest:
        query = f"repository_url={quote(repository, safe='')}" + (
            f"&tag={quote(tag, safe='')}" if tag else ""
        )
        more["purl"] = (
            f"pkg:oci/{quote(repository.rpartition('/')[2].lower())}@{quote(digest, safe='')}?{query}"
        )
        algorithm, _, value = digest.partition(":")
        if algorithm == "sha256":
            more["hashes"] = [{"alg": "SHA-256", "content": value}]
    return _part("container", "image", repository, given, **more)


def _text(resource: Resource, key: str) -> str:
    value = resource.raw(key)
    return "" if is_unknown(value) or not isinstance(value, str) else value
