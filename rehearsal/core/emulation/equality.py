"""Values that a provider takes for equal although they are written differently."""

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_HOST = re.compile(r"^(?:https?:)?//[^/]+/(?:compute/|dns/|sql/)?(?:v\d\w*/|beta/)?(?=projects/)")
_ACCOUNT = re.compile(r"arn:aws[\w-]*:iam::(\d{12}):root")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_CASED = re.compile(r"allUsers|allAuthenticatedUsers|^principal(?:Set|Hierarchy)?:")
_IMAGE = re.compile(r"^(?:projects/)?(?:([^/]+)/)??(?:global/images/)?(?:family/)?([^/]+)$")
# Parts of a statement of a policy in which one value may stand for a list of one, in any order.
_LISTS = ("Action", "NotAction", "Resource", "NotResource")


def alike(kind: str, one: Any, other: Any) -> bool:
    """Return whether two values are equal to a provider that compares them by `kind`."""
    if not isinstance(one, str) or not isinstance(other, str):
        return bool(one == other)
    return one == other or KINDS[kind](one, other)


def _by(form: Callable[[str], Any]) -> Callable[[str, str], bool]:
    """Equality of what `form` makes of both; a text that it cannot read equals only itself."""

    def compare(one: str, other: str) -> bool:
        try:
            return bool(form(one) == form(other))
        except (ValueError, TypeError, AttributeError):  # a document of another shape
            return False

    return compare


def _policy(text: str) -> Any:
    """An IAM policy in one form: statements and lists have no order (hashicorp/awspolicyequivalence)."""
    document = json.loads(text)
    if not isinstance(document, Mapping):
        return document
    found = document.get("Statement")
    statements = found if isinstance(found, list) else [found] if found else []
    return {**document, "Statement": sorted((_statement(one) for one in statements), key=repr)}


def _statement(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    made = {name: _listed(value) if name in _LISTS else value for name, value in given.items()}
    for name in ("Principal", "NotPrincipal"):
        if name in made:
            who = {"AWS": "*"} if made[name] == "*" else made[name]
            made[name] = (
                sorted((kind, _listed(value)) for kind, value in who.items())
                if isinstance(who, Mapping)
                else who
            )
    condition = made.get("Condition")
    if isinstance(condition, Mapping):
        made["Condition"] = sorted(
            (operator, sorted((key, _listed(value)) for key, value in keys.items()))
            for operator, keys in condition.items()
            if isinstance(keys, Mapping)
        )
    return sorted(made.items(), key=repr)


def _listed(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return sorted({_ACCOUNT.sub(r"\1", _text(item)) for item in items})


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _containers(text: str) -> Any:
    """Containers of a task of ECS: without order, defaults and what is empty.

    Source: hashicorp/terraform-provider-aws, internal/service/ecs/task_definition_equivalency.go.
    """
    found = json.loads(text)
    return sorted((_container(one) for one in found), key=repr) if isinstance(found, list) else found


def _container(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    made: dict[str, Any] = {
        "essential": True,
        **{name: value for name, value in given.items() if value or value is False},
    }
    for name in ("environment", "secrets"):
        if isinstance(made.get(name), list):
            made[name] = sorted(made[name], key=repr)
    ports = made.get("portMappings")
    if isinstance(ports, list):
        made["portMappings"] = [
            {"protocol": "tcp", **{name: value for name, value in one.items() if value}} for one in ports
        ]
    return sorted(made.items())


def _network(text: str) -> Any:
    return ipaddress.ip_network(text, strict=False) if "/" in text else ipaddress.ip_address(text)


def _path(text: str) -> str:
    return _HOST.sub("", text).strip("/")


def _named(one: str, other: str) -> bool:
    """A name equals the link that ends with it; two links are compared as paths."""
    if "/" in one and "/" in other:
        return _path(one) == _path(other)
    return one.rpartition("/")[2] == other.rpartition("/")[2]


def _seconds(text: str) -> float:
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _member(one: str, other: str) -> bool:
    """Principals of Google Cloud have no case, but for those of pools and for everybody.

    Source: hashicorp/terraform-provider-google, google/tpgiamresource (iamMemberCaseDiffSuppress).
    """
    return not any(map(_CASED.search, (one, other))) and one.casefold() == other.casefold()


def _image(old: str, new: str) -> bool:
    """An image, and its family or its other forms; without a project it is one of any.

    Source: hashicorp/terraform-provider-google, google/services/compute/resource_compute_disk.go
    (DiskImageDiffSuppress), without the families that are no part of the names of their images.
    """
    found, wanted = (_IMAGE.search(_path(one)) for one in (old, new))
    if not found or not wanted or (found[1] and wanted[1] and found[1] != wanted[1]):
        return False
    image, family = found[2], wanted[2]
    if image == family:
        return True
    for chip in ("-arm64", "-amd64"):
        if image.endswith(chip) or f"{chip}-" in image or family.endswith(chip):
            return family.endswith(chip) and family.removesuffix(chip) in image and chip in image
    return family in image


KINDS: Mapping[str, Callable[[str, str], bool]] = {
    "case": _by(str.casefold),
    "space": _by(str.strip),
    "dot": _by(lambda text: text.rstrip(".").lower()),
    "json": _by(json.loads),
    "policy": _by(_policy),
    "containers": _by(_containers),
    "network": _by(_network),
    "link": _by(_path),
    "name": _named,
    "duration": _by(_seconds),
    "member": _member,
    "image": _image,
}
"""Kind of equality -> comparison of two different texts; `tools/provider_changes.py` lists the functions of
the providers that stand for each."""
