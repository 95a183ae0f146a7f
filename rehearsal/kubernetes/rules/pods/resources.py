"""Container resources: quantities, requests and limits, devices, huge pages."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import amount, at, mapping, pod, rows
from rehearsal.kubernetes.rules.book import BOOK, CLAIM, CORE, LIMIT_RANGE, PODS, QUOTA, VOLUME
from rehearsal.kubernetes.rules.violations import NEGATIVE, forbidden, invalid, required

_HELPERS = "kubernetes/kubernetes pkg/apis/core/helper/helpers.go"
_QUANTITY = "kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity"
_SIDES = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def overcommits(name: str) -> bool:
    """Return whether requests may be below limits: not for devices and huge pages."""
    native = "/" not in name or "kubernetes.io/" in name
    return native and not name.startswith("hugepages-")


def _asked(inputs: Properties) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """The path, requests and limits of every container; unknown ones are left out."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        resources = mapping(container.get("resources"))
        requests, limits = resources.get("requests"), resources.get("limits")
        if UNKNOWN not in (requests, limits):
            yield f"{path}.resources", mapping(requests), mapping(limits)


def _each(inputs: Properties) -> Iterator[tuple[str, str, Any]]:
    for path, requests, limits in _asked(inputs):
        for side, found in (("limits", limits), ("requests", requests)):
            for name, value in found.items():
                yield f"{path}.{side}[{name}]", name, value


@BOOK.rule("K8S-RES-001", *PODS, source=_QUANTITY)
def _quantities(inputs: Properties) -> Iterator[Violation]:
    """Amounts are quantities that are not negative."""
    for path, _, value in _each(inputs):
        number = amount(value)
        if number is None and value is not UNKNOWN and value is not None:
            yield invalid(path, value, _FORM)
        elif number is not None and number < 0:
            yield invalid(path, value, NEGATIVE)


@BOOK.rule("K8S-RES-007", QUOTA, LIMIT_RANGE, CLAIM, VOLUME, source=_QUANTITY)
def _other_quantities(inputs: Properties) -> Iterator[Violation]:
    """The amounts of quotas, limit ranges, claims and volumes are quantities."""
    found = {f"spec.{key}": at(inputs, f"spec.{key}")
             for key in ("hard", "capacity", "resources.requests", "resources.limits")}  # fmt: skip
    for index, row in rows(at(inputs, "spec.limits")):
        found |= {f"spec.limits[{index}].{side}": row.get(side) for side in _SIDES}
    for path, amounts in found.items():
        for name, value in mapping(amounts).items():
            if amount(value) is None and value is not UNKNOWN and value is not None:
                yield invalid(f"{path}[{name}]", value, _FORM)


@BOOK.rule("K8S-RES-002", *PODS, source=CORE)
def _within_limit(inputs: Properties) -> Iterator[Violation]:
    """A container's request is at most its limit."""
    for path, requests, limits in _asked(inputs):
        for name, value in requests.items():
            asked, limit = amount(value), amount(limits.get(name))
            if overcommits(name) and asked is not None and limit is not None and asked > limit:
                yield invalid(
                    f"{path}.requests", value, f"must be less than or equal to {name} limit of {limits[name]}"
                )


@BOOK.rule("K8S-RES-003", *PODS, source=_HELPERS)
def _no_overcommit(inputs: Properties) -> Iterator[Violation]:
    """Devices and huge pages are not shared: the limit is given, and the request, if any, is the same."""
    for path, requests, limits in _asked(inputs):
        for name, value in requests.items():
            if overcommits(name):
                continue
            asked, limit = amount(value), amount(limits.get(name))
            if limits.get(name) is None:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            elif asked is not None and limit is not None and asked != limit:
                yield invalid(f"{path}.requests", value, f"must be equal to {name} limit of {limits[name]}")


@BOOK.rule("K8S-RES-004", *PODS, source=CORE)
def _whole_devices(inputs: Properties) -> Iterator[Violation]:
    """Devices are counted in whole numbers."""
    for path, name, value in _each(inputs):
        number = amount(value)
        if "/" in name and not overcommits(name) and number is not None and number % 1:
            yield invalid(path, value, "must be an integer")


@BOOK.rule("K8S-RES-005", *PODS, source=CORE)
def _huge_pages(inputs: Properties) -> Iterator[Violation]:
    """Huge pages come with cpu or memory."""
    for path, requests, limits in _asked(inputs):
        names = {*requests, *limits}
        if any(name.startswith("hugepages-") for name in names) and not names & {"cpu", "memory"}:
            yield forbidden(path, "HugePages require cpu or memory")


@BOOK.rule("K8S-RES-006", *PODS, source=CORE)
def _names(inputs: Properties) -> Iterator[Violation]:
    """A resource is a standard one, or has the domain of its provider."""
    for path, name, _ in _each(inputs):
        if "/" not in name:
            if name not in _STANDARD and not name.startswith("hugepages-"):
                yield invalid(path, name, "must be a standard resource type or fully qualified")
        elif wrong := grammar.label_key(name):
            yield invalid(path, name, wrong)
