"""Queries of Cloud Asset Inventory for resources of a type, and their names.

Types: Cloud Asset Inventory, "Asset types" (docs.cloud.google.com/asset-inventory/docs/asset-types, read on
2026-11-24). Names: cloud.google.com/asset-inventory/docs/asset-names. The data of a resource has the format
of its own API ("Resource.data" in cloudasset v1): fields of its discovery document.
"""

from typing import Any

from policies.sources.live.mapping import AnswerIndex, LiveKind, Reader, Shape, View
from policies.sources.live.queries import ACCOUNT, ApiQuery

PROJECT = "cloudresourcemanager.projects.get"
OF_PROJECT = f"projects/{ACCOUNT}"
# The data of an asset, with its name. Missing data is an error.
_DATA = "assets[].merge(resource.data, {assetName: name})"
_POLICY = "assets[].{assetName: name, iamPolicy: iamPolicy}"


def assets(type: str) -> ApiQuery:
    """All resources of a type such as `compute.googleapis.com/Firewall`."""
    return ApiQuery(
        "cloudasset", "assets.list", _DATA, right="cloudasset.assets.listResource", label=type,
        given={"parent": OF_PROJECT, "contentType": "RESOURCE", "assetTypes": type},
    )  # fmt: skip


def policies_of(type: str) -> ApiQuery:
    """IAM policies of all resources of a type."""
    return ApiQuery(
        "cloudasset", "assets.list", _POLICY, right="cloudasset.assets.listIamPolicy",
        label=f"policies of {type}",
        given={"parent": OF_PROJECT, "contentType": "IAM_POLICY", "assetTypes": type},
    )  # fmt: skip


def asset(
    kind: str,
    type: str,
    props: Shape,
    *,
    id: Reader | None = None,
    when: Reader = bool,
    made: Reader | None = None,
    labels: str = "labels",
    keys: tuple[str, ...] = (),
    program_only: tuple[str, ...] = (),
    owned: bool = True,
) -> LiveKind:
    """Mapping of assets of a type: each has its own location, and the last part of its id as name.

    `owned`: the provider has a property `project`.
    """
    identity = id or named
    return LiveKind(
        kind,
        assets(type).name,
        identity,
        {**({"project": "account"} if owned else {}), **props},
        name=lambda view: last(identity(view)),
        tags=labels,
        regionless=True,
        when=when,
        made=made,
        keys=keys,
        program_only=program_only,
    )


def named(view: View) -> str:
    """The id of an asset: its name without the service, such as `projects/P/global/firewalls/F`."""
    return own(view, below_service(view.at("assetName")))


def below_service(asset_name: Any) -> str:
    """The path in the name of an asset, such as `//compute.googleapis.com/PATH`."""
    return str(asset_name).removeprefix("//").partition("/")[2]


def by_name(view: View) -> str:
    """The id of a resource that its own API names by a full path."""
    return own(view, str(view.at("name")))


def project_number(look: AnswerIndex) -> str:
    """Number of the project, which some services use as its name; empty if it is unknown."""
    return next((str(item.answer.get("projectNumber") or "") for item in look.items(PROJECT)), "")


def own(view: View, path: str) -> str:
    """A path with the project id instead of its number."""
    start, _, rest = path.removeprefix("projects/").partition("/")
    number = project_number(view.look)
    known = path.startswith("projects/") and number and start == number
    return f"projects/{view.look.account}/{rest}" if known else path


def last(path: Any) -> str:
    """The last part of a path or link: the name of its target."""
    return str(path or "").rpartition("/")[2]


def end_of(path: str) -> Reader:
    """The last part of the link at a path, or None."""
    return lambda view: last(view.at(path)) or None


def part(name: str) -> Reader:
    """The part after `name` in an id, such as the location of `projects/P/locations/L/keyRings/K`."""

    def read(view: View) -> Any:
        steps = named(view).split("/")
        return steps[steps.index(name) + 1] if name in steps[:-1] else None

    return read


def short(view: View) -> str:
    """The last part of an id."""
    return last(named(view))


def switch(path: str) -> Reader:
    """A boolean: APIs omit false, and the provider reads that as false."""
    return lambda view: view.at(path) is True


def number(path: str) -> Reader:
    """A number, which APIs write as a string if it has 64 bits."""

    def read(view: View) -> Any:
        value = view.at(path)
        return int(value) if isinstance(value, str | float) and str(value) else value

    return read
