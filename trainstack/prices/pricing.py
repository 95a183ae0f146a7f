"""Price the resources of a preview by their types."""

import datetime
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from infra.catalog.registry import CATALOGS
from infra.cost.model import CostItem
from infra.cost.tariff import Tariff
from policies.resource import Resource, UndeterminedError, is_unknown
from rehearsal.aws.table import canonical
from trainstack.prices import aws, gcp
from trainstack.prices.model import (
    BY_USAGE,
    PricedResource,
    PricePlace,
    Pricer,
    PriceStanding,
    PricingPlan,
    UnpricedPart,
)

_PRICERS: Mapping[str, Pricer] = {**aws.PRICERS, **gcp.PRICERS}
_LOCATED: Mapping[str, Callable[[Resource], str]] = {"gcp": gcp.region_named}
"""The region that a resource itself names, of clouds whose resources do."""
_LOCAL = ("random", "tls", "null", "time", "local", "command")
"""Packages whose resources are no cloud's."""
_OF_CLUSTERS = {
    "kubernetes:core/v1:PersistentVolumeClaim": "the volume that its class creates",
    "kubernetes:core/v1:Service": "the load balancer of its type",
    "kubernetes:helm.sh/v3:Release": "volumes and load balancers of its chart",
    "kubernetes:apps/v1:StatefulSet": "volumes of its claims",
}
"""Objects of Kubernetes that may create resources outside of the cluster; others run on its nodes."""


@dataclass(frozen=True)
class PricedPlan:
    """The prices of all resources of one side of a preview."""

    resources: Sequence[PricedResource]

    def of(self, standing: PriceStanding) -> list[PricedResource]:
        """The resources of a standing."""
        return [one for one in self.resources if one.standing is standing]

    @property
    def usd(self) -> tuple[float, float, float]:
        """US dollars per month of everything with a price: minimum, expected, maximum."""
        known = [one.usd for one in self.resources if one.usd is not None]
        low, usual, high = (sum(figures) for figures in zip((0.0, 0.0, 0.0), *known, strict=True))
        return low, usual, high


def priced(resources: Sequence[Resource], on: datetime.date) -> PricedPlan:
    """Price resources as of a day, which decides whether a version of Kubernetes costs extra."""
    plan = PricingPlan(resources, on, {one.urn: one for one in resources})
    return PricedPlan([_priced(one, plan) for one in resources])


def _priced(resource: Resource, plan: PricingPlan) -> PricedResource:
    package, _, rest = resource.kind.partition(":")
    kind = canonical(resource.kind)
    region = "" if is_unknown(resource.region) else str(resource.region)
    if located := _LOCATED.get(package):
        region = located(resource) or region
    pricer = _PRICERS.get(kind)
    lists = _lists(package)
    if pricer is not None:
        return _by(
            pricer, resource, PricePlace(region, plan, Tariff(CATALOGS[package].service_price, region))
        )
    made = (resource.urn, resource.kind, resource.name, region)
    rest = kind.partition(":")[2]
    if rest in lists.usage:
        return PricedResource(
            *made, PriceStanding.BY_USAGE, unpriced=[_use(package, lists.usage[rest], region)]
        )
    if rest in lists.free or package in _LOCAL or (package == "kubernetes" and not _outside(resource)):
        return PricedResource(*made, PriceStanding.FREE)
    why = _OF_CLUSTERS.get(kind, "no price of this type is known")
    return PricedResource(*made, PriceStanding.UNKNOWN, unpriced=[UnpricedPart(kind, why)])


def _by(pricer: Pricer, resource: Resource, place: PricePlace) -> PricedResource:
    parts, unpriced = list[CostItem](), list[UnpricedPart]()
    try:
        for part in pricer(resource, place):
            if isinstance(part, UnpricedPart):
                unpriced.append(part)
            else:
                parts.append(part)
    except UndeterminedError as error:
        unpriced.append(UnpricedPart("the rest" if parts else "all of it", str(error)))
    unknown = [one for one in unpriced if one.reason != BY_USAGE]
    standing = PriceStanding.UNKNOWN if unknown else PriceStanding.PRICED if parts else PriceStanding.FREE
    return PricedResource(resource.urn, resource.kind, resource.name, place.region, standing, parts, unpriced)


def _outside(resource: Resource) -> bool:
    """Return whether an object of Kubernetes may create resources outside of the cluster."""
    if resource.kind not in _OF_CLUSTERS:
        return False
    spec = resource.raw("spec")
    if is_unknown(spec) or not isinstance(spec, dict):
        return True
    if resource.kind.endswith(":Service"):
        kind = dict.get(spec, "type")
        return is_unknown(kind) or kind == "LoadBalancer"
    if resource.kind.endswith(":StatefulSet"):
        return bool(dict.get(spec, "volumeClaimTemplates"))
    return True


def _use(package: str, key: str, region: str) -> UnpricedPart:
    rate = Tariff(CATALOGS[package].service_price, region).use("usage", key) if key else None
    known = f"{BY_USAGE}, ${rate.usd:g} per {rate.unit}" if rate and rate.usd is not None else BY_USAGE
    return UnpricedPart("usage", known)


@dataclass(frozen=True)
class _Lists:
    free: frozenset[str]
    usage: Mapping[str, str]


@cache
def _lists(package: str) -> _Lists:
    path = Path(__file__).parent / "tables" / f"{package}.toml"
    if package not in CATALOGS:
        return _Lists(frozenset(), {})
    content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return _Lists(frozenset(content["free"]["types"]), content["usage"])
