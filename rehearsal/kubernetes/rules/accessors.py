"""Accessors for objects in rules: values that are missing, mistyped or unknown cause no violation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from infra import quantity
from rehearsal.core.model import UNKNOWN

Object = Mapping[str, Any]


def mapping(value: Any) -> Object:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def rows(value: Any) -> Iterator[tuple[int, Object]]:
    """The mappings of a list, with their indexes."""
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


def at(value: Any, path: str) -> Any:
    """The value at a dotted path: None when absent, UNKNOWN below an unknown value."""
    for name in path.split("."):
        if value is UNKNOWN:
            return UNKNOWN
        value = mapping(value).get(name)
    return value


def text(value: Any) -> str | None:
    """The value if it is a string."""
    return value if isinstance(value, str) else None


def texts(value: Any) -> Iterator[tuple[int, str]]:
    """The strings of a list, with their indexes."""
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, str):
            yield index, item


def whole(value: Any) -> int | None:
    """The value if it is an integer, or a string of one, which the provider converts."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if float(value).is_integer() else None
    return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else None


def amount(value: Any) -> Decimal | None:
    """The number of a quantity such as `500m`; None for an invalid one."""
    if (
        isinstance(value, bool)
        or not isinstance(value, str | int | float)
        or str(value) != str(value).strip()
    ):
        return None
    try:
        return quantity.parse(value)
    except ValueError:
        return None


def absent(value: Any) -> bool:
    """Return whether a value is missing or empty; an unknown one is neither."""
    return value is None or (value is not UNKNOWN and value in ("", [], {}))


def unsure(value: Any) -> bool:
    """Return whether a value is not completely known."""
    if isinstance(value, Mapping):
        return any(unsure(item) for item in value.values())
    if isinstance(value, list):
        return any(unsure(item) for item in value)
    return value is UNKNOWN


def name(inputs: Object) -> str | None:
    """Name of the object."""
    return text(at(inputs, "metadata.name"))


def namespace(inputs: Object) -> str:
    """Namespace of a namespaced object; empty while unknown."""
    found = at(inputs, "metadata.namespace")
    return "" if found is UNKNOWN else text(found) or "default"


@dataclass(frozen=True)
class PodView:
    """The pod of an object, or its pod template; `path` is that of the specification."""

    path: str
    spec: Object
    metadata: Object
    template: bool

    @property
    def asks(self) -> bool:
        """Return whether all resources of containers are known, and none are set for the pod as a whole."""
        groups = [self.spec.get(group) for group in ("containers", "initContainers")]
        lists = [group for group in groups if isinstance(group, list)]
        asked = [row.get("resources") for group in lists for _, row in rows(group)]
        if not absent(self.spec.get("resources")):
            return False  # pod-level resources (Kubernetes 1.34): no rule counts them
        return UNKNOWN not in groups and not any(UNKNOWN in group for group in lists) and not unsure(asked)

    def containers(self) -> Iterator[tuple[str, Object]]:
        """Every container and init container with its path."""
        for group in ("initContainers", "containers"):
            for index, row in rows(self.spec.get(group)):
                yield f"{self.path}.{group}[{index}]", row


def pod(inputs: Object) -> PodView | None:
    """The pod of an object, or None when its specification is unknown."""
    spec = inputs.get("spec")
    prefix = "spec.template"
    if inputs.get("kind") == "CronJob" or "jobTemplate" in mapping(spec):
        prefix = "spec.jobTemplate.spec.template"
    elif inputs.get("kind", "Pod") == "Pod" and "template" not in mapping(spec):
        own = PodView("spec", mapping(spec), mapping(inputs.get("metadata")), False)
        return None if spec is UNKNOWN else own
    template = at(inputs, prefix)
    found = at(template, "spec")
    if found is UNKNOWN:
        return None
    return PodView(f"{prefix}.spec", mapping(found), mapping(mapping(template).get("metadata")), True)
