"""How Cloud Asset Inventory is asked for resources of a type, and how its answers name them.

Types: Cloud Asset Inventory, "Asset types" (docs.cloud.google.com/asset-inventory/docs/asset-types, read on
2026-11-24). Names: cloud.google.com/asset-inventory/docs/asset-names. The data of a resource is what its own
API answers ("Resource.data" in cloudasset v1): fields of its discovery document.
"""

from typing import Any

from policies.sources.live.form import Kind, Look, Reader, Shape, View
from policies.sources.live.question import ACCOUNT, Question

PROJECT = "cloudresourcemanager.projects.get"
OF_PROJECT = f"projects/{ACCOUNT}"
# The data of an asset, with its name. Data that is not there is an error, which counts as no answer.
_DATA = "assets[].merge(resource.data, {assetName: name})"
_POLICY = "assets[].{assetName: name, iamPolicy: iamPolicy}"


def assets(type: str) -> Question:
    """All resources of a type such as `compute.googleapis.com/Firewall`."""
    return Question(
        "cloudasset", "assets.list", _DATA, right="cloudasset.assets.listResource", label=type,
        given={"parent": OF_PROJECT, "contentType": "RESOURCE", "assetTypes": type},
    )  # fmt: skip


def policies_of(type: str) -> Question:
    """Who may do what with each resource of a type."""
    return Question(
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
    untold: tuple[str, ...] = (),
    owned: bool = True,
) -> Kind:
    """How assets of a type become resources: each names its own place, and is called by the end of its id.

    `owned`: the provider has its project as a property, and not in another one.
    """
    identity = id or named
    return Kind(
        kind,
        assets(type).name,
        identity,
        {**({"project": "account"} if owned else {}), **props},
        name=lambda view: last(identity(view)),
        tags=labels,
        everywhere=True,
        when=when,
        made=made,
        keys=keys,
        untold=untold,
    )


def named(view: View) -> str:
    """The id of an asset: its name without the service, such as `projects/P/global/firewalls/F`."""
    return own(view, below_service(view.at("assetName")))


def below_service(asset_name: Any) -> str:
    """The path in the name of an asset, such as `//compute.googleapis.com/PATH`."""
    return str(asset_name).removeprefix("//").partition("/")[2]


def by_name(view: View) -> str:
    """The id of what its own API names by a whole path."""
    return own(view, str(view.at("name")))


def project_number(look: Look) -> str:
    """By which some services call the project; empty where that is not told."""
    return next((str(item.answer.get("projectNumber") or "") for item in look.items(PROJECT)), "")


def own(view: View, path: str) -> str:
    """A path with the id of the project, which some services call by its number."""
    start, _, rest = path.removeprefix("projects/").partition("/")
    number = project_number(view.look)
    known = path.startswith("projects/") and number and start == number
    return f"projects/{view.look.account}/{rest}" if known else path


def last(path: Any) -> str:
    """The end of a path or link, which is the name of what it leads to."""
    return str(path or "").rpartition("/")[2]


def end_of(path: str) -> Reader:
    """The end of the link at a path; None where there is none."""
    return lambda view: last(view.at(path)) or None


def part(name: str) -> Reader:
    """What stands behind `name` in an id, such as the location of `projects/P/locations/L/keyRings/K`."""

    def read(view: View) -> Any:
        steps = named(view).split("/")
        return steps[steps.index(name) + 1] if name in steps[:-1] else None

    return read


def short(view: View) -> str:
    """The end of an id."""
    return last(named(view))


def switch(path: str) -> Reader:
    """A boolean: APIs leave out one that is false, and the provider reads that as false."""
    return lambda view: view.at(path) is True


def number(path: str) -> Reader:
    """A number, which APIs write as a text where it has 64 bits."""

    def read(view: View) -> Any:
        value = view.at(path)
        return int(value) if isinstance(value, str | float) and str(value) else value

    return read
