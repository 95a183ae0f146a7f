"""Where a resource is, and what it shows to the engine and to others."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Call, CheckFailure, Properties
from rehearsal.core.properties import at, decoded
from rehearsal.core.schema import ResourceSchema
from rehearsal.gcp.generic import computed
from rehearsal.gcp.naming import expand, project_number
from rehearsal.gcp.site import Site
from rehearsal.gcp.table import Row, rows

# What a program knows before the resource exists, although the provider fills it in.
_FORESEEN = frozenset({"project", "region", "zone", "location", "effectiveLabels", "pulumiLabels"})
_LOCATED = re.compile(r"projects/[^/]+/(locations|regions|zones)/([^/]+)/")
_LABELLED = "goog-pulumi-provisioned"


def project_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """The project of a resource, or nothing when neither it nor the provider names one."""
    for value in (inputs.get("project"), config.get("project")):
        if isinstance(value, str) and value:
            return value.removeprefix("projects/")
    return ""


def places_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Properties:
    """Region, zone and location of a resource as far as they are known."""
    zone = _text(inputs.get("zone")) or _text(config.get("zone"))
    region = _text(inputs.get("region")) or _text(config.get("region"))
    if not region and zone:
        region = zone.rpartition("-")[0]
    location = _text(inputs.get("location"))
    cluster = _LOCATED.search(_text(inputs.get("cluster")))
    if not location and cluster:
        location = cluster.group(2)
    if not location:  # the provider's own order, in its regional_utils.go
        location = _text(config.get("region")) or zone
    found = {"region": region, "zone": zone, "location": location}
    return {name: value.rpartition("/")[2] for name, value in found.items() if value}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def misplaced(line: Row, schema: ResourceSchema, call: Call, inputs: Properties) -> list[CheckFailure]:
    """What keeps the provider from knowing project, region or zone of a resource."""
    config, failures = call.instance.config, []
    if UNKNOWN in (inputs.get("project"), config.get("project"), inputs.get(line.place)):
        return []
    if "project" in schema.inputs and not project_of(config, inputs):
        reason = (
            "project: required field is not set; set it here or in the stack's configuration (gcp:project)"
        )
        failures.append(CheckFailure("project", reason))
    if line.place and line.place in schema.inputs and not places_of(config, inputs).get(line.place):
        where = "zone" if line.place == "zone" else "'region' or 'zone'"
        reason = f"Cannot determine {line.place}: set in this resource, or set provider-level {where}."
        failures.append(CheckFailure(line.place, reason))
    return failures


def labels_of(config: Mapping[str, Any], inputs: Properties) -> dict[str, Any]:
    """The resource's labels over the provider's."""
    defaults = decoded(config.get("defaultLabels"))
    own = inputs.get("labels")
    marked = decoded(config.get("addPulumiAttributionLabel")) is True
    return {
        **({_LABELLED: "true"} if marked else {}),
        **(defaults if isinstance(defaults, dict) else {}),
        **(own if isinstance(own, dict) else {}),
    }


def compute(
    site: Site, line: Row, schema: ResourceSchema | None, seed: str, inputs: Properties
) -> tuple[str, Properties]:
    """Id and outputs of a new resource, before what its service adds."""
    outputs: Properties = {**line.defaults, **inputs}
    for name in line.upper:
        if isinstance(outputs.get(name), str):
            outputs[name] = outputs[name].upper()
    for name, value in {"project": site.project, **site.places}.items():
        if schema is not None and name in schema.outputs:
            outputs.setdefault(name, value)
    words = {**site.places, **outputs, "project": site.project, "number": project_number(site.project)}
    words.update({name: str(words.get(name, "")).rpartition("/")[2] for name in line.leaf})
    for name, template in line.outputs.items():
        if outputs.get(name) is None and "{id}" not in str(template) and "{leaf:id}" not in str(template):
            outputs[name] = words[name] = expand(template, f"{seed}/{name}", words)
    words["id"] = expand(line.id, seed, words)
    for name, template in line.outputs.items():
        if outputs.get(name) is None:
            outputs[name] = expand(template, f"{seed}/{name}", words)
    if line.link:
        outputs.setdefault("selfLink", f"{line.link}{words['id']}")
    if schema is not None and line.token not in rows():
        outputs = {**computed(schema, seed, words["id"], site.project), **outputs}
    labels = labels_of(site.call.instance.config, inputs)
    outputs.update({"effectiveLabels": labels, "pulumiLabels": labels})
    return words["id"], outputs


def identifiers(line: Row, id: str, outputs: Properties) -> set[str]:
    """The values by which others may refer to a resource, whatever its project."""
    values = [id, outputs.get("selfLink"), *(outputs.get(name) for name in line.issues)]
    return {value for value in values if isinstance(value, str) and value}


def preview_of(line: Row, inputs: Properties, outputs: Properties) -> Properties:
    """The outputs with everything unknown that only the service decides."""
    settled = {**line.defaults, **inputs}
    return {
        name: value if name in _FORESEEN else _foreseen(settled.get(name, UNKNOWN), value)
        for name, value in outputs.items()
    }


def _foreseen(given: Any, computed: Any) -> Any:
    """What is given, and unknown for what the service adds inside of it."""
    if isinstance(given, dict) and isinstance(computed, dict):
        added = {name: _foreseen(given.get(name, UNKNOWN), value) for name, value in computed.items()}
        return {**given, **added}
    return given


def shrinks(line: Row, path: str, old: Properties, new: Properties) -> bool:
    """Whether a range that may only grow becomes another or a smaller one."""
    if path not in line.grows:
        return False
    before, after = at(old, path), at(new, path)
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    return not _holds(after, before)


def _holds(outer: str, inner: str) -> bool:
    try:
        wide, narrow = ipaddress.ip_network(outer), ipaddress.ip_network(inner)
    except ValueError:
        return False
    if isinstance(wide, ipaddress.IPv4Network) and isinstance(narrow, ipaddress.IPv4Network):
        return narrow.subnet_of(wide)
    return False
